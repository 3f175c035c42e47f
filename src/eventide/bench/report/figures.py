"""The figures of a report, from its numbers: ranking, heat maps, error curves, streams, comparison.

They are drawings, which the page paints; here they also become image files and the picture of results in a notebook.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eventide.arrays import Floats
from eventide.bench.report.comparisons import CONFIDENCE, Change, Rank, geometric_mean, means_of_known, student_quantile
from eventide.bench.report.scores import Contest, Scores, read_scores
from eventide.bench.report.streams import Shown
from eventide.bench.report.verdict import METRIC_NAMES, against_others
from eventide.bench.run.results import NOT_PRIVATE, Results, standings
from eventide.bench.study.requirements import BASELINES
from eventide.bench.study.study import Setting
from eventide.display.cards import MOST_ROWS, card
from eventide.display.drawings import (
    CHANGE,
    DISTANCE,
    GREY,
    Curve,
    Figure,
    HeatMap,
    Panel,
    Style,
    TextTable,
    shortened,
    shown,
    shown_briefly,
    style_of,
)
from eventide.display.images import check_image, draw, save
from eventide.errors import InputError

BEST = "•"
IMAGE_KINDS = ("pdf", "svg", "png")
SETTING = "privacy setting"
SWEPT = {"epsilon": "privacy budget epsilon", "window": "window w, in steps"}
SHARED = " A setting that several experiments have is shown once, as the first of them measured it."
BAND = "The band around a release is the mechanism's own interval for the true value."


def styles(scores: Scores) -> dict[str, Style]:
    """The look of each mechanism, the same in all figures."""
    return {
        label: style_of(column, name in BASELINES)
        for column, (label, name) in enumerate(zip(scores.mechanisms, scores.names, strict=True))
    }


def ranking_figure(scores: Scores, ranks: Sequence[Rank]) -> Figure:
    """Typical distances from the best, with intervals."""
    looks = styles(scores)
    curves = [
        Curve(r.mechanism, looks[r.mechanism]._replace(line=False), [r.mechanism], [r.typical], [r.low], [r.high])
        for r in ranks
    ]
    headings = ["mechanism", "times the best", "from", "to", "worst cell", "best in", "as good in", "cells"]
    rows = [
        [r.mechanism, *map(shown, (r.typical, r.low, r.high, r.worst)), *map(str, (r.best, r.as_good, r.cells))]
        for r in ranks
    ]
    return Figure(
        "ranking",
        "Ranking",
        "A mechanism's error divided by the best error of the cell, as a geometric mean over all cells: 1 is best "
        "everywhere. Bars are 95 % intervals, by a bootstrap over streams.",
        (Panel("", "mechanism", "error, times the best of each cell", curves),),
        TextTable(headings, rows),
    )


def overview_map(scores: Scores, title: str) -> HeatMap:
    """Streams by mechanisms: distances from the best, as geometric means over settings."""
    rows = [[contest.stream == label for contest in scores.contests] for label in scores.streams]
    ratios = np.exp([means_of_known(scores.logs[ours]) for ours in rows])
    texts = _texts(ratios, shown_briefly)
    return HeatMap(title, _shorts(scores), list(scores.mechanisms), ratios, DISTANCE, texts, "mechanism")


def overview_figure(scores: Scores, without: str | None) -> Figure:
    """The overview; as a pair, without and with a mechanism, if one is named."""
    if without is None:
        maps = [overview_map(scores, "")]
    else:
        maps = [overview_map(scores.without(without), f"without {without}"), overview_map(scores, f"with {without}")]
    return Figure(
        "overview",
        "Distance from the best, by stream and mechanism" + (f", without and with {without}" if without else ""),
        "Error divided by the best error, as a geometric mean over all settings. Yellow is near the best, dark is far.",
        tuple(maps),
        _table_of(*maps),
    )


def cells_figure(scores: Scores) -> Figure:
    """Every cell: a heat map of streams by settings for each mechanism."""
    labels, every, scores = setting_labels(scores.settings), len(scores.contests), scores.once()
    shared = SHARED if len(scores.contests) < every else ""
    columns = [labels[setting] for setting in scores.settings]
    maps = []
    for column, label in enumerate(scores.mechanisms):
        ratios = scores.by_stream(scores.deltas[:, column])
        best = scores.by_stream((scores.winners == column).astype(np.float64)) == 1
        texts = np.where(best, BEST, "").tolist()
        maps.append(HeatMap(label, _shorts(scores), columns, ratios, DISTANCE, texts, SETTING))
    rows = [
        [scores.place(contest), *map(shown, deltas)]
        for contest, deltas in zip(scores.contests, scores.deltas, strict=True)
    ]
    return Figure(
        "cells",
        "Distance from the best in every cell",
        f"A map for each mechanism: streams from top to bottom, privacy settings from left to right. {BEST} marks the "
        f"cells in which it is best.{shared}",
        tuple(maps),
        TextTable(["cell", *scores.mechanisms], rows),
    )


def effect_figure(scores: Scores, name: str) -> Figure:
    """A mechanism against the best of all others, cell by cell."""
    labels, scores = setting_labels(scores.settings), scores.once()
    ratios = scores.by_stream(against_others(scores, name))
    columns, texts = [labels[setting] for setting in scores.settings], _texts(ratios, shown_briefly)
    heat = HeatMap("", _shorts(scores), columns, ratios, CHANGE, texts, SETTING)
    return Figure(
        "effect",
        f"{name} against the best of all others",
        f"The error of {name} divided by the least error of all other mechanisms: below 1, blue, it is the best.",
        (heat,),
        _table_of(heat),
    )


def curve_figure(scores: Scores, label: str, number: int, zeros: float | None) -> Figure:
    """A stream's errors over epsilon and over w, with the error of zeros where it is known."""
    scores = scores.once()
    places = [place for place, contest in enumerate(scores.contests) if contest.stream == label]
    panels = []
    for title, axis, chosen in _sweeps([(place, scores.contests[place].setting) for place in places]):
        x = [float(getattr(scores.contests[place].setting, axis)) for place in chosen]
        panels.append(_sweep_panel(scores, title, SWEPT[axis], chosen, x, zeros))
    rows = [
        [f"epsilon {setting.epsilon:g}, w {setting.window}", *map(shown, scores.means[place])]
        for place, setting in ((place, scores.contests[place].setting) for place in places)
    ]
    return Figure(
        f"curves-{number}",
        scores.streams[label].short,
        f"The {METRIC_NAMES.get(scores.metric, scores.metric)} on this stream: lower is better, circles are baselines, "
        "bars are 95 % intervals of the mean over repetitions."
        + ("" if zeros is None else f" Releasing zeros for ever would give {shown(zeros)} (dotted)."),
        tuple(panels),
        TextTable(["setting", *scores.mechanisms], rows),
    )


def stream_figure(scores: Scores, contest: Contest, number: int, cells: Sequence[Shown]) -> Figure:
    """True and released totals of a stream, a panel for each mechanism."""
    looks = styles(scores)
    panels = []
    for cell in cells:
        steps = list(map(float, range(len(cell.truth))))
        released = Curve(cell.mechanism, looks[cell.mechanism]._replace(marker=None), steps, cell.released.tolist())
        if cell.interval is not None:
            low, high = cell.interval.T.tolist()
            released = released._replace(low=low, high=high)
        true = Curve("true", Style(GREY), steps, cell.truth.astype(np.float64).tolist())
        panels.append(Panel(cell.mechanism, "step", "value of all bins", [released, true], y_log=False))
    rows = [[cell.mechanism, shown(cell.error)] for cell in cells]
    return Figure(
        f"streams-{number}",
        scores.place(contest),
        "True values and one release of each mechanism."
        + (f" {BAND}" if any(cell.interval is not None for cell in cells) else ""),
        tuple(panels),
        TextTable(["mechanism", f"{scores.metric} of this release"], rows),
    )


def change_figure(scores: Scores, changes: Sequence[Change]) -> Figure:
    """The errors of these results over those of the others, streams by mechanisms."""
    found: dict[tuple[str, str], list[float]] = {}
    for change in changes:
        found.setdefault((change.contest.stream, change.mechanism), []).append(change.ratio)
    streams = [label for label in scores.streams if any(label == stream for stream, _ in found)]
    mechanisms = [label for label in scores.mechanisms if any(label == mechanism for _, mechanism in found)]
    ratios = np.array([[geometric_mean(np.array(found.get((s, m), []))) for m in mechanisms] for s in streams])
    shorts = [scores.streams[label].short for label in streams]
    texts = _texts(ratios, lambda ratio: f"{ratio:.2f}")
    heat = HeatMap("", shorts, mechanisms, ratios, CHANGE, texts, "mechanism")
    return Figure(
        "changes",
        "What changed",
        "Errors of these results divided by those of the other ones, as geometric means over settings: blue is better "
        "now, red is worse.",
        (heat,),
        _table_of(heat),
    )


def setting_labels(settings: Sequence[Setting]) -> dict[Setting, str]:
    """Each setting by what varies in its experiment."""
    labels = {}
    for setting in settings:
        others = [other for other in settings if other.experiment == setting.experiment]
        parts = [f"ε {setting.epsilon:g}"] if len({other.epsilon for other in others}) > 1 else []
        parts += [f"w {setting.window}"] if len({other.window for other in others}) > 1 or not parts else []
        labels[setting] = " ".join(parts)
    return labels


def _sweeps(settings: Sequence[tuple[int, Setting]]) -> list[tuple[str, str, list[int]]]:
    """Places whose settings differ in epsilon alone, or in w alone, in the order of that; with a title and the axis."""
    found = []
    for axis, fixed in (("window", "epsilon"), ("epsilon", "window")):
        alike: dict[float, list[tuple[float, int]]] = {}
        for place, setting in settings:
            alike.setdefault(getattr(setting, fixed), []).append((getattr(setting, axis), place))
        for value, varied in alike.items():
            if len(varied) > 1:
                name = {"epsilon": "epsilon", "window": "w"}[fixed]
                found.append((f"{name} = {value:g}", axis, [place for _, place in sorted(varied)]))
    return found


def _sweep_panel(
    scores: Scores, title: str, x_title: str, places: list[int], x: list[float], zeros: float | None
) -> Panel:
    reach = student_quantile(CONFIDENCE, scores.repetitions - 1) * scores.errors[places]
    curves = []
    for column, (label, style) in enumerate(styles(scores).items()):
        means = scores.means[places, column]
        if not np.isnan(means).all():
            low, high = (means - reach[:, column]).tolist(), (means + reach[:, column]).tolist()
            curves.append(Curve(label, style, x, means.tolist(), low, high))
    if zeros:
        curves.append(Curve("zeros", Style(GREY, dash=True), x, [zeros] * len(x)))
    return Panel(title, x_title, METRIC_NAMES.get(scores.metric, scores.metric), curves)


def _texts(ratios: Floats, write: Callable[[float], str]) -> list[list[str]]:
    return [["" if np.isnan(ratio) else write(ratio) for ratio in row] for row in ratios]


def _table_of(*maps: HeatMap) -> TextTable:
    """The ratios of heat maps of the same streams, side by side."""
    columns = [f"{column}, {heat.title}" if heat.title else column for heat in maps for column in heat.columns]
    ratios = np.hstack([heat.ratios for heat in maps])
    rows = [[label, *map(shown, each)] for label, each in zip(maps[0].rows, ratios, strict=True)]
    return TextTable(["stream", *columns], rows)


def _shorts(scores: Scores) -> list[str]:
    return [stream.short for stream in scores.streams.values()]


def write_images(figures: Sequence[Figure], folder: Path, kinds: Sequence[str] = IMAGE_KINDS) -> list[Path]:
    """Write each figure as these kinds of image into a folder, which is made if it is not there."""
    places = {figure.name: [folder / f"{figure.name}.{kind}" for kind in kinds] for figure in figures}
    written = [path for paths in places.values() for path in paths]
    for path in written:
        check_image(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for figure in figures:
            save(draw(figure.title, figure.charts), *places[figure.name])
    except OSError as problem:
        raise InputError(f"cannot write to {folder}: {problem.strerror}; choose another --figures") from None
    return written


def results_card(results: Results) -> str:
    """What was studied, and how mechanisms fare."""
    about, found = results.about, standings(results)
    rows = [[shortened(each.mechanism), shown(each.median_delta), f"{each.best} of {each.contests}"] for each in found]
    table = TextTable(["mechanism", "times the best error", "best in"], rows[:MOST_ROWS])
    facts = {"streams": f"{len(about['streams']):,}", "mechanisms": f"{len(found):,}", "seed": str(about["seed"])}
    return card(f"Results of {shortened(about['study'])}", facts, table, [NOT_PRIVATE])


def draw_results(results: Results, stream: str | None, metric: str | None) -> Any:
    """How far from the best every mechanism is on every stream; of one stream, its errors over w and over epsilon."""
    scores = read_scores(results, metric)
    if stream is None:
        figure = overview_figure(scores, without=None)
    else:
        found = [label for label, known in scores.streams.items() if stream in (label, known.short)]
        if not found:
            choices = ", ".join(repr(known.short) for known in scores.streams.values())
            raise InputError(f"these results hold no stream {stream!r}; choose one of {choices}")
        figure = curve_figure(scores, found[0], 1, zeros=None)
    if not figure.charts:
        raise InputError(f"{stream} was studied under one setting alone; a curve needs several")
    return draw(figure.title, figure.charts)
