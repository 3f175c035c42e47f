"""What the service answers, as the OpenAPI description shows it; the text below each field is its description there.

What stands here was released or is public, with three exceptions that are raw: operations, for operators; the receipt
of a batch, for whoever sent it; and the counts of synthetic streams, which are nobody's. Stored releases are sent as
they are, and only described here.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from eventide.service.http.problems import ProblemDocument


class Answer(BaseModel):
    """What all answers have in common: their fields are described where they stand."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class AccessAnswer(Answer):
    """What the token of a request may do."""

    role: Literal["read", "operate"]
    """`read`: releases and everything public. `operate`: also the raw figures."""


class QueryAnswer(Answer):
    """A window query: how many events fell into the last `window` steps, answered every `step` steps."""

    name: str
    """The name of the query."""
    window: int
    """How many steps one answer covers."""
    step: int
    """How many steps lie between two answers."""


class QuestionsAnswer(Answer):
    """The window queries that a stream answers, and their share of epsilon."""

    of: Literal["bins", "total"]
    """Whether an answer has a number for each bin, or one for all bins together."""
    epsilon: float
    """The part of the stream's epsilon that these answers use."""
    queries: list[QueryAnswer]
    """The queries."""


class StreamAnswer(Answer):
    """A stream: its public settings, and how far it is."""

    name: str
    """The name of the stream."""
    population: str
    """Whose events these are. Streams about the same people share one budget."""
    mechanism: str
    """The mechanism that makes the releases."""
    filter: str
    """What is done to the noisy numbers afterwards; it costs no budget."""
    epsilon: float
    """The privacy budget of this stream in every window."""
    window: int
    """The length of a window, in steps."""
    step: str
    """The length of a step, such as `10min`."""
    step_seconds: float
    """The same in seconds. A step of whole days follows the calendar, so it may be an hour shorter or longer."""
    zone: str
    """The time zone in which steps begin, such as `Europe/Berlin`."""
    cap: str | None
    """How many events of one person count, such as `2/7d`; null: no such limit."""
    statistic: str
    """What is published of the events, such as `events`, `people` or `sum:fare`."""
    title: str
    """The same in words."""
    unit: float | None
    """The unit in which values are counted: 1 for events and people; null for what is computed, such as a mean."""
    statistics: list[str]
    """The statistics in a release. The numbers of the first one are those of the release itself."""
    bins: int
    """How many bins have a name."""
    next_step: int
    """The number of the next step to be released; so many steps were released before it."""
    next_start: str | None
    """When that step begins."""
    measured_from: int
    """The first step that is measured. Steps before it only repeat the last release, until there is budget for more."""
    lag_seconds: float
    """How long the next release is overdue, in whole steps; 0 while the stream is on time."""
    health: Literal["running", "behind", "ahead", "waiting", "failed"]
    """`running`: on time. `behind`: a release is overdue. `ahead`: steps were released that are not over yet by the
    clock, so no event counts. `waiting`: for its store. `failed`: stopped."""
    synthetic: bool
    """Whether the events are random numbers, as in the demonstration."""
    questions: QuestionsAnswer | None
    """The window queries that the stream answers; null: none."""
    span: int | None
    """How many of the last steps `window_values` of a release cover; null: releases have none."""


class StreamsAnswer(Answer):
    """The streams that the token is good for."""

    streams: list[StreamAnswer]
    """One entry for each stream."""


class LevelAnswer(Answer):
    """A level: groups of bins."""

    name: str
    """The name of the level."""
    groups: list[str]
    """The names of its groups, in the order of its values."""
    group_of: list[int]
    """For each bin the place of its group in `groups`."""


class BinsAnswer(Answer):
    """The names of the bins and of the groups that they belong to."""

    bins: list[str]
    """The names, in the order of the values of a release."""
    spare: list[int] = []
    """The places of spare bins that have no name yet. Their values are 0."""
    closed: list[int] = []
    """The places of bins that were closed. They take no more events, and their values are 0."""
    levels: list[LevelAnswer] = []
    """The levels, from the smallest groups to the total."""


class DueAnswer(Answer):
    """An answer to a window query, as it is stored: an estimate of how many events fell into some steps."""

    query: str
    """The name of the query."""
    begin: int
    """The first step that the answer covers."""
    end: int
    """The first step that it does not cover."""
    values: list[float]
    """One number for each bin, or one for all bins together."""
    variance: float
    """The variance of the noise in each number."""


class LevelRelease(Answer):
    """What a release says of a level (one number for each group), or of a further statistic (one for each bin)."""

    fresh: bool
    """Whether it was measured at this step."""
    values: list[float | None]
    """The estimates; null: no data."""
    scale: list[float | None]
    """The scale of the noise behind each value; null: not measured yet."""
    low: list[float | None] | None = None
    """The lower end of the interval around each value, where the mechanism gives one."""
    high: list[float | None] | None = None
    """The upper end of the interval around each value."""


class ReleaseAnswer(Answer):
    """A release, as it is stored: estimates of the numbers of one step."""

    step: int
    """The number of the step, from 0."""
    start: str | None = None
    """When the step begins."""
    statistic: str | None = None
    """The statistic of `values`, where a release has several."""
    fresh: bool
    """Whether anything was measured at this step. If not, values follow from earlier measurements."""
    values: list[float | None]
    """The estimates, one for each bin; null: no data."""
    scale: list[float | None]
    """The scale of the noise behind each value; null: not measured yet."""
    low: list[float | None] | None = None
    """The lower end of the interval around each value, where the mechanism gives one."""
    high: list[float | None] | None = None
    """The upper end of the interval around each value."""
    window_values: list[float] | None = None
    """The estimates for the last `span` steps together, where the mechanism gives them."""
    window_scale: list[float | None] | None = None
    """The scale of the noise behind each of these."""
    window_low: list[float | None] | None = None
    """The lower end of the interval around each of these; null: not known."""
    window_high: list[float | None] | None = None
    """The upper end of the interval around each of these; null: not known."""
    levels: dict[str, LevelRelease] | None = None
    """For each level its sums."""
    bins: dict[str, str] | None = None
    """The names that spare bins had by then."""
    statistics: dict[str, LevelRelease] | None = None
    """For each further statistic its numbers."""
    answers: list[DueAnswer] | None = None
    """The answers to window queries that were due at the end of this step."""


class ReleasesAnswer(Answer):
    """A page of releases."""

    releases: list[ReleaseAnswer]
    """The releases, in the order of their steps."""
    next: int | None
    """The step with which the next page begins; null: this is the last page."""


class DatedAnswer(DueAnswer):
    """An answer to a window query, with its times."""

    step: int
    """The step at whose end it was due."""
    start: str | None
    """When the first of its steps begins."""
    until: str | None
    """When the last of its steps ends."""


class AnswersAnswer(Answer):
    """A page of answers to window queries."""

    answers: list[DatedAnswer]
    """The answers, in the order of the steps at whose ends they were due."""
    next: int | None
    """The step with which the next page begins; null: this is the last page."""


class WindowAnswer(Answer):
    """What the window that ends at a step holds; with a window sensitivity what one person can lose by the step."""

    step: int
    """The last step of the window."""
    start: str | None
    """When that step begins."""
    in_window: float
    """The epsilon spent in the window."""


class ReturnAnswer(Answer):
    """When budget comes back, because the step that spent it has left the window."""

    step: int
    """The step from which it can be spent again."""
    start: str | None
    """When that step begins."""
    amount: float
    """How much epsilon comes back."""


class LedgerAnswer(Answer):
    """The privacy budget: of the window that ends now, of the fullest window ever, and of the latest windows.

    With a cap, every step has a budget of its own. All amounts are then what one person can lose in any window.
    """

    epsilon: float
    """The most that any window may hold."""
    window: int
    """The length of a window, in steps."""
    window_sensitivity: int | None
    """How much one person's events in a window can change the counts; null: there is no cap."""
    spent: float
    """What the window that ends now holds."""
    left: float
    """What is left in it."""
    worst: float
    """What the fullest window ever held, also before a backup was restored or the settings changed."""
    worst_of: float
    """The epsilon of that time, which that window was not to go above."""
    verified: bool
    """Whether no window holds more than the epsilon of its time, counted again from the stored entries."""
    next_return: ReturnAnswer | None
    """When budget comes back next; null: nothing is spent in this window."""
    history: list[WindowAnswer]
    """The latest windows, oldest first."""


class GuaranteeAnswer(Answer):
    """What is promised to the people behind a stream."""

    sentence: str
    """The whole promise, in short sentences on one line."""
    notion: str
    """The kind of privacy."""
    epsilon: float
    """The budget of all streams about the same people together."""
    own: float
    """The part of it that this stream has."""
    window: int
    """The length of a window, in steps."""
    unit: str
    """What is hidden, such as the events of one person."""
    sensitivity: int
    """The most that one person adds to a step, over all bins together."""
    window_sensitivity: int | None
    """The most that one person adds to a window, where there is a cap."""
    assumptions: list[str]
    """What the promise relies on."""
    private: bool
    """False for a stream without real noise: it must not be published."""


class OperationsAnswer(Answer):
    """Raw figures about events, for operators only."""

    accepted: int
    """Events that were taken."""
    late: int
    """Events that came after the deadline of their step."""
    left_out: int
    """Events of released steps that were taken and do not count, by the limits on what one person adds."""
    left_out_by_cap: int | None
    """Those of them that the cap alone left out; null: there is no cap."""
    refused: dict[str, int]
    """Events that were refused, for each reason."""
    waiting: int
    """Batches that are not durable yet."""


class SyntheticCounts(Answer):
    """True counts of a step of a synthetic stream."""

    step: int
    """The number of the step."""
    values: list[int]
    """The true counts, one for each bin."""


class SyntheticAnswer(Answer):
    """True counts, of a synthetic stream only."""

    counts: list[SyntheticCounts]
    """One entry for each step."""


class RefusedEvent(Answer):
    """An event that was not taken."""

    event: int
    """Its place in the batch, from 0."""
    reason: str
    """Why it was refused."""


class ReceiptAnswer(Answer):
    """What became of a batch."""

    accepted: int
    """How many events were taken."""
    duplicate: bool
    """Whether the key of the batch was used before. Nothing of it was then taken again."""
    refused: dict[str, int]
    """How many events were refused, for each reason."""
    events: list[RefusedEvent]
    """The first hundred events that could not be read or named no known bin."""


class RefusedBatch(ProblemDocument):
    """A batch of which no event was taken, or a request that is not as it must be; the rest is as of other batches."""

    accepted: int = 0
    """How many events were taken: none."""
    duplicate: bool = False
    """Whether the key of the batch was used before: it was not."""
    refused: dict[str, int] = Field(default_factory=dict)
    """How many events were refused, for each reason."""
    events: list[RefusedEvent] = Field(default_factory=list)
    """The first hundred events that could not be read or named no known bin."""


class HealthAnswer(Answer):
    """Whether all is well."""

    status: Literal["ok"]
    """Always `ok`; else the answer is a refusal."""
