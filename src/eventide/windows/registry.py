"""Planners by name; each one's module is imported on first use.

An unknown name is refused with the list of known ones. Imports eventide.errors, schemes and the workload.
"""

from __future__ import annotations

import importlib

from eventide.errors import InputError
from eventide.windows.scheme import Scheme
from eventide.windows.workload import Workload

PLANNERS = {
    "base": "eventide.windows.base",
    "binary": "eventide.windows.binary",
    "sample-dp": "eventide.windows.sample_dp",
    "emd": "eventide.windows.emd",
    "best": "eventide.windows.best",
}


def design(planner: str, workload: Workload, budget: int) -> Scheme:
    """What the named planner makes of a workload, within `budget` nano-epsilon."""
    if planner not in PLANNERS:
        raise InputError(f"there is no planner {planner!r}; use one of {', '.join(PLANNERS)}")
    scheme: Scheme = importlib.import_module(PLANNERS[planner]).design(workload, budget)
    return scheme
