"""What an answer is made of, and plans as pictures."""

import numpy as np
import pytest

from eventide import windows
from eventide.errors import InputError
from eventide.windows import Query
from eventide.windows.answering.estimates import composition


@pytest.mark.parametrize("planner", ["base", "sample-dp", "emd", "best"])
def test_weights_of_a_composition_make_the_answer(planner):
    plan = windows.plan([Query(20, 5), *[Query(120, 60)] * 3], planner=planner)
    for query, begin in ((Query(20, 5), 45), (Query(120, 60), 0), (Query(120, 60), 60), (Query(20, 5), 0)):
        parts = composition(plan.scheme, begin, begin + query.window, query.step)
        covered = np.zeros(begin + query.window)
        for first, last, weight in zip(parts.begin, parts.end, parts.weight, strict=True):
            covered[first:last] += weight
        np.testing.assert_allclose(covered, np.arange(begin + query.window) >= begin, atol=1e-9)
    with pytest.raises(InputError, match="where no slot of the plan does"):
        composition(plan.scheme, 3, 20, 5)


def test_a_plan_is_drawn():
    pytest.importorskip("matplotlib", reason="needs matplotlib: pip install '.[test-all]'")
    plan = windows.plan([Query(20, 5), *[Query(120, 60)] * 3])
    for figure in (plan.plot(), plan.plot(Query(20, 5)), plan.plot(Query(20, 5), 10)):
        axes, _ = figure.axes
        assert len(axes.collections) == len(plan.scheme.partitions)
        assert "every" in axes.get_title()
    assert "[10, 30)" in axes.get_title()
    with pytest.raises(InputError, match="is not planned"):
        plan.plot(Query(7, 7))
    with pytest.raises(InputError, match="more than 3,000 slots"):
        windows.plan([Query(3_001, 1)]).plot()
