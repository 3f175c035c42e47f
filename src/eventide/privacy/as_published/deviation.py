"""The grouper of AdaPub as published, whose privacy is disputed.

Every step asks again for the deviation of the whole open group, with fresh noise, and compares it with a threshold
that has none. So a count goes on to influence every later answer of its group and loses budget at each of them, but is
charged for one. With a noisy threshold only the answer that ends a group would cost anything: that is `GroupTest`,
which mechanisms use unless the published form is asked for.
"""

from __future__ import annotations

import numpy as np

from eventide.arrays import Array, Bools, Ints
from eventide.privacy.group_test import GroupTest


class PublishedGroupTest(GroupTest):
    """Groups steps like `GroupTest`, but with noise of scale 2 sensitivity / e on deviations and none on thresholds.

    NOT shown to be private: the charge of e a step is what the paper claims.
    """

    QUERY_FACTOR = 2

    def begin(self, counts: Ints, where: Bools, threshold_noise: Array) -> None:
        """Open a group that holds this step alone; the noise that the meter drew for its threshold is left out."""
        super().begin(counts, where, np.zeros_like(threshold_noise))
