"""The planner `base`: every step has a layer of its own, and budgets are equal.

With L distinct steps a window of W ticks moving by S has variance 2 L^2 (W / S) / epsilon^2. It is what every other
planner is measured against (Cao et al., EDBT 2013).
"""

from __future__ import annotations

from eventide.windows.schemes.cover import Layers
from eventide.windows.workload import Workload


def design(workload: Workload, budget: int) -> Layers:
    """The plan of all steps, within `budget` nano-epsilon."""
    steps = workload.steps.sizes
    return Layers.of(workload, steps, {step: step for step in steps}, budget)
