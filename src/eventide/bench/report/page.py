"""A report of a study's results: one page that says what they mean, shows it, and holds every number behind it.

Numbers, words, drawings and their painters are the neighbours of this file; here they are put in order. The page loads
nothing from anywhere.
"""

from __future__ import annotations

import html
import json
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from eventide.bench.report import figures, tables
from eventide.bench.report.comparisons import FEWEST_STREAMS, Change, Rank, compare, influences, ranking, shifts
from eventide.bench.report.page_parts import Page, sentences, table
from eventide.bench.report.scores import Contest, Scores, read_scores
from eventide.bench.report.streams import ShownStreams, read_shown
from eventide.bench.report.verdict import about_changes, about_requirements, about_zeros, effect, verdict
from eventide.bench.reproduction.findings import among, findings, findings_table
from eventide.bench.reproduction.reference import differences, differences_table, read_reference, reasons_table
from eventide.bench.run.results import NOT_PRIVATE, Results
from eventide.bench.study.requirements import BASELINES
from eventide.display.drawings import Figure
from eventide.display.pages import filled, packed
from eventide.errors import InputError

OURS = "tide"
MOST_SHOWN = 4  # streams drawn next to their releases
NO_INTERVALS = f"Fewer than {FEWEST_STREAMS} streams are too few for intervals."
INTERVALS = (
    "Intervals are 95 % bootstrap intervals over streams: a stream is drawn with all of its settings, so they say how "
    "much the ranking owes to the choice of streams. A mechanism is as good as the best of a cell if the difference of "
    "their means lies within Student's 95 % interval over the repetitions."
)
MEANS = "Means over all cells in which a figure exists; docs/reference/metrics.md says what each of them is."
TOGETHER = "Intervals of changes hold for all cells together with 95 % confidence."


@dataclass(frozen=True)
class Report:
    """What a report says, and the page and the figures that show it."""

    verdict: list[str]
    ranking: list[Rank]
    figures: list[Figure]
    page: str


@dataclass(frozen=True)
class Material:
    """Everything a report is made of. chosen: the mechanism whose effect on the others is shown, if there is one."""

    results: Results
    other: Results | None
    scores: Scores
    chosen: str | None
    shown: ShownStreams
    reference: Scores | None

    @cached_property
    def others(self) -> Scores:
        """The scores without the chosen mechanism."""
        return self.scores if self.chosen is None else self.scores.without(self.chosen)

    @cached_property
    def zeros(self) -> dict[str, float]:
        """By stream, the error of releasing zeros for ever, where it may be known."""
        return self.shown.errors_of_zeros()

    @cached_property
    def changes(self) -> list[Change]:
        """What differs from the other results."""
        return (
            [] if self.other is None else compare(self.scores, read_scores(self.other, self.scores.metric, "the other"))
        )

    @cached_property
    def verdict(self) -> list[str]:
        """All sentences of the verdict."""
        said = [about_changes(shifts(self.changes))] if self.changes else []
        said += [effect(self.scores, self.chosen), f"From here on {self.chosen} is left out."] if self.chosen else []
        said += [*verdict(self.others), *about_zeros(self.others, self.zeros)]
        return [*said, about_requirements(self.results.about["requirements"])]


def build_report(
    results: Results,
    other: Results | None = None,
    *,
    metric: str | None = None,
    without: str | None = None,
    public: Iterable[str] = (),
    reference: str | Path | None = None,
    data: str | Path | None = None,
    tell: Callable[[str], None] = lambda stage: None,
) -> Report:
    """Report on results, by an error metric, perhaps compared with other results.

    Parameters
    ----------
    results, other
        The results, and those to compare them with.
    metric
        The error to report on; by default the first error of the study.
    without
        A mechanism whose effect on the others is shown; `tide` if it takes part.
    public
        Streams, besides the generated ones, of which true counts may be shown.
    reference
        A file with figures of the benchmark's public code.
    data
        The folder of the public streams.
    tell
        Hears what is being done.
    """
    tell("reading")
    scores = read_scores(results, metric)
    material = Material(
        results=results,
        other=other,
        scores=scores,
        chosen=_chosen(scores, without),
        shown=read_shown(results, scores.metric, public, data),
        reference=None if reference is None else read_reference(reference),
    )
    page, ranks = Page(), ranking(scores)
    tell("drawing")
    page.section("The verdict", sentences(material.verdict), kind="verdict")
    _comparison(page, material)
    page.section(
        "Ranking",
        page.figure(figures.ranking_figure(scores, ranks), titled=False, open_table=True),
        sentences([INTERVALS if len(scores.streams) >= FEWEST_STREAMS else NO_INTERVALS]),
    )
    _heat_maps(page, material)
    page.section("Error over w and over epsilon", page.choice("Stream", _curves(material)))
    tell("running chosen cells again")
    page.section("True and released", page.choice("Stream", _streams(material)), sentences(material.shown.skipped))
    _further_tables(page, material)
    return Report(material.verdict, ranks, page.figures, _filled(page, material))


def _chosen(scores: Scores, without: str | None) -> str | None:
    """The mechanism to leave out in turn; there must be others."""
    if without is not None and without not in scores.names:
        raise InputError(
            f"{without!r} takes no part in these results; choose one of {', '.join(dict.fromkeys(scores.names))}"
        )
    name = without or OURS
    return name if name in scores.names and len(set(scores.names)) > 1 else None


def _comparison(page: Page, material: Material) -> None:
    if material.other is None:
        return
    changes = material.changes
    changed = tables.changes_table(material.scores, changes)
    page.section(
        "Against the other results",
        sentences([TOGETHER]),
        page.figure(figures.change_figure(material.scores, changes)),
        table(tables.shifts_table(shifts(changes))),
        table(changed, "The cells that changed most") if changed.rows else "",
        table(tables.versions_table([material.results, material.other])),
    )


def _heat_maps(page: Page, material: Material) -> None:
    parts = [page.figure(figures.overview_figure(material.scores, material.chosen))]
    if material.chosen is not None:
        parts.append(page.figure(figures.effect_figure(material.scores, material.chosen)))
    parts.append(page.figure(figures.cells_figure(material.scores)))
    parts.append(table(tables.influence_table(influences(material.others)), "What decides"))
    page.section("How far from the best", *parts)


def _curves(material: Material) -> list[Figure]:
    drawn = [
        figures.curve_figure(material.scores, label, number, material.zeros.get(label))
        for number, label in enumerate(material.scores.streams, start=1)
    ]
    return [figure for figure in drawn if figure.charts]


def _streams(material: Material) -> list[Figure]:
    """A few streams, from the last to the first, under the setting that most experiments share."""
    labels = [label for label in reversed(material.scores.streams) if label in material.shown.looked]
    places = dict.fromkeys(round(part * (len(labels) - 1) / (MOST_SHOWN - 1)) for part in range(MOST_SHOWN))
    drawn = []
    for number, label in enumerate((labels[place] for place in places if labels), start=1):
        contest = _most_shared(material.scores, label)
        cells = [material.shown.released(contest, label) for label in _worth_showing(material, contest)]
        if known := [cell for cell in cells if cell is not None]:
            drawn.append(figures.stream_figure(material.scores, contest, number, known))
    return drawn


def _most_shared(scores: Scores, label: str) -> Contest:
    contests = [contest for contest in scores.contests if contest.stream == label]
    shared = Counter((contest.setting.epsilon, contest.setting.window) for contest in contests)
    return max(contests, key=lambda contest: shared[contest.setting.epsilon, contest.setting.window])


def _worth_showing(material: Material, contest: Contest) -> list[str]:
    """The baselines, the best of the others and the chosen one."""
    scores, others = material.scores, material.others
    columns = scores.columns(*BASELINES, *([material.chosen] if material.chosen else []))
    best = others.mechanisms[others.winners[others.contests.index(contest)]] if contest in others.contests else None
    labels = [scores.mechanisms[column] for column in columns]
    return list(dict.fromkeys([*labels, *([best] if best else [])]))


def _further_tables(page: Page, material: Material) -> None:
    scores, results, reference = material.scores, material.results, material.reference
    coverage, further = tables.coverage_table(results), tables.other_metrics_table(results, scores.metric)
    page.section("Do intervals hold the truth?", table(coverage) if coverage.rows else "")
    page.section("What else was measured", *([sentences([MEANS]), table(further)] if further.rows else []))
    page.section("The streams", table(tables.streams_table(scores, results)))
    found = findings(material.others, reference)
    reasons = reasons_table(scores) if reference is None else differences_table(differences(scores, reference))
    page.section(
        "Where we differ from the published benchmark, and why",
        sentences([among(scores)]) if found else "",
        table(findings_table(found), words=True) if found else "",
        table(reasons, words=True) if reasons.rows else "",
    )
    page.section("The benchmark's requirements", table(tables.requirements_table(results), words=True))
    page.section(
        "How to repeat this",
        table(tables.versions_table([results])) if material.other is None else "",
        f"<details><summary>The study</summary><pre>{html.escape(results.about['text'])}</pre></details>",
    )


def _filled(page: Page, material: Material) -> str:
    about = material.results.about
    title = tomllib.loads(about["text"]).get("title")
    parts = {
        "title": html.escape(f"Study {about['study']}"),
        "about": html.escape(f"{title}. {NOT_PRIVATE}" if title else NOT_PRIVATE),
        "parts": "\n".join(page.parts),
        "data": packed(json.dumps(page.charts, separators=(",", ":"))),
    }
    return filled("eventide.bench.report", "page.html", parts)
