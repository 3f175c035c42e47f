"""The parameters of all registered mechanisms together, for whoever asks for a mechanism by its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Required

from eventide.mechanisms.pegasus import GroupingParameters
from eventide.privacy.amounts import Amount


class EveryParameter(GroupingParameters, total=False):
    """What `eventide.mechanism` takes; which of them a mechanism takes, its class says."""

    epsilon: Required[Amount]
    window: int
    bins: Required[int | Sequence[str]]
    accounting: str
    algorithm: int | None
    as_published: bool
    eagerness: float
    first_interval: int
    gain: float
    gains: Sequence[float]
    groups: int | str | None
    history: int
    k: int | None
    largest_gap: float
    largest_part: float
    largest_sum: float
    least_correlation: float
    least_value: float
    looks: int | None
    measurement_noise: float | None
    memory: int
    monitor_share: float
    pan_private: str | None
    pivots: int
    process_noise: float
    sampling_rate: float
    seasons: Sequence[float] | str | None
    set_point: float
    shift_budget: bool
    span: int
    stretch: float
    test_share: float
    threshold: float
