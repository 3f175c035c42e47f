"""The mean of a column: measured as two sums that are not negative, of which the mean and the number of events follow.

In units of the grid, A is how far all values together lie above LOW, and B how far below HIGH. So A + B is the number
of events times the width of the range, and the mean is LOW plus the part A / (A + B) of that width: inside of the
range, whatever the noise. One event adds to A and B together just the width, wherever its value lies. So both are
measured at once, with the noise of one sum: the errors of the number and of the sum around the middle of the range are
those of two measurements that were charged half each, divided by the square root of 2.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.events.statistics import MEAN, OfValues, Told
from eventide.events.sum_tally import Spread
from eventide.events.value_grid import ValueGrid


class ValueMean(OfValues):
    """The mean of a column, whose values are cut to a range and rounded to a grid; NaN where there are no events.

    Private because: of a person's values at most `most` count in a step, over all bins, and each adds (value - lowest)
    to one number and (highest - value) to another; so a row that is added or removed moves all numbers together by at
    most most x (highest - lowest). With another value in an event that is known, both move by as much as the two are
    apart: values are hidden with twice epsilon. Under a cap the events that differ are those of counts.
    """

    grid: ValueGrid
    columns, direct = 2, False

    def __init__(self, grid: ValueGrid) -> None:
        self.name, self.title, self.grid = f"{MEAN}{grid.column}", f"means of {grid.column}", grid
        self.moved = f"the two sums that the {self.title} are made of"

    def spread(self, values: Ints) -> Spread:
        """How far above the least value, and how far below the greatest."""
        first = np.zeros(len(values), np.int64)
        return [(first, values - self.grid.lowest), (first + 1, self.grid.highest - values)]

    def sensitivity(self, most: int) -> int:
        """In units of the grid: the width of the range for each event."""
        return most * self._width

    def adds_up(self, most: int) -> bool:
        """Means of two bins are not that of both."""
        return False

    def tell(self, found: Told) -> dict[str, Told]:
        """The mean with an interval; no data where the number of events is nearest to 0.

        The interval holds what the mean is wherever both sums lie in theirs: with few events it grows to the whole
        range. The scale is that of the noise in the sums.
        """
        above, below = np.moveaxis(np.maximum(found.values, 0), -1, 0)
        low, high = found.ends()
        nothing = np.rint((above + below) / self._width) < 1
        ends = self._mean(low[..., 0], high[..., 1]), self._mean(high[..., 0], low[..., 1])
        values, least, most = (np.where(nothing, np.nan, each) for each in (self._mean(above, below), *ends))
        return {self.name: Told(values, found.scale.max(axis=-1) * float(self.unit), least, most)}

    def assumptions(self, most: int) -> tuple[str, ...]:
        """What a unit is, and how well values are hidden where it is known that events happened."""
        return (self.cut(), self.hidden(Fraction(2)))

    @property
    def _width(self) -> int:
        return self.grid.highest - self.grid.lowest

    def _mean(self, above: Floats, below: Floats) -> Floats:
        """The mean of so much above LOW and so much below HIGH; the middle where both are nothing."""
        whole = above + below
        part = np.divide(above, whole, out=np.full(np.shape(whole), 0.5), where=(whole > 0) & np.isfinite(whole))
        part = np.where(np.isinf(whole), np.where(np.isinf(above), 1.0, 0.0), part)
        return np.asarray(float(self.unit) * (self.grid.lowest + self._width * part))
