"""Planners by name; each one's module is imported on first use.

An unknown name is refused with the list of known ones.
"""

from __future__ import annotations

import importlib

from eventide.errors import InputError
from eventide.windows.schemes.scheme import Scheme
from eventide.windows.workload import Workload

PLANNERS = {
    "base": "eventide.windows.planners.every_step",
    "binary": "eventide.windows.planners.binary",
    "sample-dp": "eventide.windows.planners.sample_dp",
    "emd": "eventide.windows.planners.emd",
    "best": "eventide.windows.planners.best",
}


def design(planner: str, workload: Workload, budget: int) -> Scheme:
    """What the named planner makes of a workload, within `budget` nano-epsilon."""
    if planner not in PLANNERS:
        raise InputError(f"there is no planner {planner!r}; use one of {', '.join(PLANNERS)}")
    scheme: Scheme = importlib.import_module(PLANNERS[planner]).design(workload, budget)
    return scheme
