"""What the service answers, as the OpenAPI description shows it.

What stands here was released or is public, with three exceptions that are raw: operations, for operators; the receipt
of a batch, for whoever sent it; and the counts of synthetic streams, which are nobody's. Stored releases are sent as
they are, and only described here.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel


class AccessAnswer(BaseModel):
    """What the token of a request is good for."""

    role: Literal["read", "operate"]


class QueryAnswer(BaseModel):
    """A query: how many events fell into the last `window` steps, asked every `step` steps."""

    name: str
    window: int
    step: int


class QuestionsAnswer(BaseModel):
    """The window queries that a stream answers, for each bin or for the total, and their share of epsilon."""

    of: Literal["bins", "total"]
    epsilon: float
    queries: list[QueryAnswer]


class StreamAnswer(BaseModel):
    """A stream: its public settings and how far it is; `lag_seconds` is how long it is behind, in whole steps.

    `statistic` is what is published of the events, `title` its numbers in words; `unit` is the step in which values are
    counted, 1 where events or people are, and none of what is computed, such as a mean. `statistics` are the names of
    what a release holds: where there are several, the first one's numbers are those of the release itself.
    `span` is of how many last steps releases have the histogram, where they have one.
    """

    name: str
    population: str
    mechanism: str
    filter: str
    epsilon: float
    window: int
    step: str
    cap: str | None
    statistic: str
    title: str
    unit: float | None
    statistics: list[str]
    bins: int
    next_step: int
    next_start: str | None
    lag_seconds: float
    health: Literal["running", "behind", "waiting", "failed"]
    synthetic: bool
    questions: QuestionsAnswer | None
    span: int | None


class StreamsAnswer(BaseModel):
    """All streams."""

    streams: list[StreamAnswer]


class LevelAnswer(BaseModel):
    """A level: its groups in the order of its values, and for every bin the place of its group among them."""

    name: str
    groups: list[str]
    group_of: list[int]


class BinsAnswer(BaseModel):
    """The names of the bins, in the order of the values of a release; and the levels, from small to the total.

    `spare` has the places of spare bins that wait for a name: their values are 0.
    """

    bins: list[str]
    spare: list[int] = []
    levels: list[LevelAnswer] = []


class DueAnswer(BaseModel):
    """An answer as it is stored: estimates of how many events fell into the steps from `begin` to before `end`.

    `values` has one number for each bin, or one for all together; `variance` is that of the noise in each.
    """

    query: str
    begin: int
    end: int
    values: list[float]
    variance: float


class LevelRelease(BaseModel):
    """What a release says of a level: sums of its bins, in the order of its groups; or of one statistic of several."""

    fresh: bool
    values: list[float | None]
    scale: list[float | None]
    low: list[float | None] | None = None
    high: list[float | None] | None = None


class ReleaseAnswer(BaseModel):
    """A release, as it is stored: estimates of the numbers of one step, each with the scale of its noise.

    A value is null where there are no data. Where there are several statistics, `statistic` is the name of the first.
    Where the mechanism gives them, `window_values` are those of the last `span` steps together, with `window_scale` and
    the ends of an interval, null where they are not known. `bins` has the names that spare bins had got by then.
    """

    step: int
    start: str | None = None
    statistic: str | None = None
    fresh: bool
    values: list[float | None]
    scale: list[float | None]
    low: list[float | None] | None = None
    high: list[float | None] | None = None
    window_values: list[float] | None = None
    window_scale: list[float | None] | None = None
    window_low: list[float | None] | None = None
    window_high: list[float | None] | None = None
    levels: dict[str, LevelRelease] | None = None
    bins: dict[str, str] | None = None
    statistics: dict[str, LevelRelease] | None = None
    answers: list[DueAnswer] | None = None


class ReleasesAnswer(BaseModel):
    """A page of releases, and the step at which the next page begins if there is one."""

    releases: list[ReleaseAnswer]
    next: int | None


class DatedAnswer(DueAnswer):
    """An answer with the step at whose end it was due, and the times between which its events fell."""

    step: int
    start: str | None
    until: str | None


class AnswersAnswer(BaseModel):
    """A page of answers, and the step at which the next page begins if there is one."""

    answers: list[DatedAnswer]
    next: int | None


class WindowAnswer(BaseModel):
    """What the window that ends at a step holds; with a window sensitivity what one person can lose by the step."""

    step: int
    start: str | None
    in_window: float


class ReturnAnswer(BaseModel):
    """At this step so much of what was spent can be spent again."""

    step: int
    start: str | None
    amount: float


class LedgerAnswer(BaseModel):
    """The budget: of the window that ends now, of the fullest ever, and of the latest windows.

    With a window sensitivity, which follows from a cap, every step has a budget of its own. All amounts are then what
    one person can lose in any window if no step is charged more: by the last step, by any, by each of the latest.
    """

    epsilon: float
    window: int
    window_sensitivity: int | None
    spent: float
    left: float
    worst: float
    verified: bool
    next_return: ReturnAnswer | None
    history: list[WindowAnswer]


class GuaranteeAnswer(BaseModel):
    """What is promised; `epsilon` is the total over all streams about the same people, `own` is this stream's part."""

    sentence: str
    notion: str
    epsilon: float
    own: float
    window: int
    unit: str
    sensitivity: int
    window_sensitivity: int | None
    assumptions: list[str]
    private: bool


class OperationsAnswer(BaseModel):
    """Raw figures about events, for operators only.

    `left_out` are those of released steps that were accepted and do not count, by the limits on what one person adds;
    `left_out_by_cap` those of them that the cap alone left out, where there is one.
    """

    accepted: int
    late: int
    left_out: int
    left_out_by_cap: int | None
    refused: dict[str, int]
    waiting: int


class SyntheticCounts(BaseModel):
    """True counts of a step, of a stream that is made of random numbers."""

    step: int
    values: list[int]


class SyntheticAnswer(BaseModel):
    """True counts, of a synthetic stream only."""

    counts: list[SyntheticCounts]


class RefusedEvent(BaseModel):
    """An event that was not taken: its place in the batch and why."""

    event: int
    reason: str


class ReceiptAnswer(BaseModel):
    """What became of a batch. `duplicate`: its key was used before, nothing of it was taken again.

    `refused` says how many were refused for each reason; `events` names the first hundred that could not be read or
    named no known bin.
    """

    accepted: int
    duplicate: bool
    refused: dict[str, int]
    events: list[RefusedEvent]


class HealthAnswer(BaseModel):
    """Whether the service is there."""

    status: Literal["ok"]
