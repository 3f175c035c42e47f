"""The sentence of a guarantee says so where its epsilon is too large to hide anybody."""

from __future__ import annotations

import pytest

from eventide.privacy.guarantees import Guarantee


@pytest.mark.parametrize(("epsilon", "said"), [(1, False), (10, False), (10.5, True), (100, True)])
def test_a_large_epsilon_gets_a_sentence(epsilon, said):
    sentence = str(Guarantee("w-event", epsilon, 24, "one person", 1))
    assert (f"Epsilon {epsilon:g} hides little of anybody" in sentence) is said
