"""The figures of a report, from its numbers: ranking, heat maps, error curves, streams, comparison.

They are drawings, which the page and the image files paint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from eventide.arrays import Floats
from eventide.bench.report.compare import Change, geometric_mean
from eventide.bench.report.field import Contest, Field, Setting
from eventide.bench.report.ranking import CONFIDENCE, Rank, student_quantile
from eventide.bench.report.streams import Shown
from eventide.bench.report.verdict import METRIC_NAMES, against_others
from eventide.bench.study.requirements import BASELINES
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
    shown,
    shown_briefly,
    style_of,
)

BEST = "•"
BAND = "The band around a release is the mechanism's own interval for the true count."

Writer = Callable[[float], str]


def styles(field: Field) -> dict[str, Style]:
    """The look of each mechanism, the same in all figures."""
    return {
        label: style_of(column, name in BASELINES)
        for column, (label, name) in enumerate(zip(field.mechanisms, field.names, strict=True))
    }


def ranking_figure(field: Field, ranks: Sequence[Rank]) -> Figure:
    """Typical distances from the best, with intervals."""
    looks = styles(field)
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
        "everywhere.",
        (Panel("", "", "times the best error", curves),),
        TextTable(headings, rows),
    )


def overview_map(field: Field, title: str) -> HeatMap:
    """Streams by mechanisms: distances from the best, as geometric means over settings."""
    labels = list(field.streams)
    means = np.full((len(labels), len(field.mechanisms)), np.nan)
    for place, label in enumerate(labels):
        ours = field.logs[[contest.stream == label for contest in field.contests]]
        known = ~np.isnan(ours)
        sums = np.where(known, ours, 0).sum(axis=0)
        np.divide(sums, known.sum(axis=0), out=means[place], where=known.any(axis=0))
    return _heat(title, _shorts(field), list(field.mechanisms), np.exp(means), shown_briefly)


def overview_figure(field: Field, without: str | None) -> Figure:
    """The overview; as a pair, without and with a mechanism, if one is named."""
    if without is None:
        maps = [overview_map(field, "")]
    else:
        maps = [overview_map(field.without(without), f"without {without}"), overview_map(field, f"with {without}")]
    return Figure(
        "overview",
        "Distance from the best, by stream and mechanism" + (f", without and with {without}" if without else ""),
        "Error divided by the best error, as a geometric mean over all settings. Yellow is near the best, dark is far.",
        tuple(maps),
        _table_of(*maps),
    )


def cells_figure(field: Field) -> Figure:
    """Every cell: a heat map of streams by settings for each mechanism."""
    columns = setting_labels(field.settings)
    maps = []
    for column, label in enumerate(field.mechanisms):
        ratios = field.by_stream(field.deltas[:, column])
        best = field.by_stream((field.winners == column).astype(np.float64)) == 1
        texts = np.where(best, BEST, "").tolist()
        maps.append(HeatMap(label, _shorts(field), columns, ratios, DISTANCE, texts))
    rows = [
        [field.place(contest), *map(shown, deltas)]
        for contest, deltas in zip(field.contests, field.deltas, strict=True)
    ]
    return Figure(
        "cells",
        "Distance from the best in every cell",
        f"A map for each mechanism: streams from top to bottom, privacy settings from left to right. {BEST} marks the "
        "cells in which it is best.",
        tuple(maps),
        TextTable(["cell", *field.mechanisms], rows),
    )


def effect_figure(field: Field, name: str) -> Figure:
    """A mechanism against the best of all others, cell by cell."""
    ratios = field.by_stream(against_others(field, name))
    heat = HeatMap("", _shorts(field), setting_labels(field.settings), ratios, CHANGE, _texts(ratios, shown_briefly))
    return Figure(
        "effect",
        f"{name} against the best of all others",
        f"The error of {name} divided by the least error of all other mechanisms: below 1, blue, it is the best.",
        (heat,),
        _table_of(heat),
    )


def curve_figure(field: Field, label: str, number: int, zeros: float | None) -> Figure:
    """A stream's errors over epsilon and over w, with the error of zeros where it is known."""
    places = [place for place, contest in enumerate(field.contests) if contest.stream == label]
    panels = []
    for title, axis, chosen in _sweeps([(place, field.contests[place].setting) for place in places]):
        x = [float(getattr(field.contests[place].setting, axis)) for place in chosen]
        panels.append(_sweep_panel(field, title, "epsilon" if axis == "epsilon" else "w", chosen, x, zeros))
    rows = [
        [f"epsilon {setting.epsilon:g}, w {setting.window}", *map(shown, field.means[place])]
        for place, setting in ((place, field.contests[place].setting) for place in places)
    ]
    return Figure(
        f"curves-{number}",
        field.streams[label].short,
        f"The {METRIC_NAMES.get(field.metric, field.metric)} on this stream: lower is better, circles are baselines."
        + ("" if zeros is None else f" Releasing zeros for ever would give {shown(zeros)} (dotted)."),
        tuple(panels),
        TextTable(["setting", *field.mechanisms], rows),
    )


def stream_figure(field: Field, contest: Contest, number: int, cells: Sequence[Shown]) -> Figure:
    """True and released totals of a stream, a panel for each mechanism."""
    looks, setting = styles(field), contest.setting
    panels = []
    for cell in cells:
        steps = list(map(float, range(len(cell.truth))))
        released = Curve(cell.mechanism, looks[cell.mechanism]._replace(marker=None), steps, cell.released.tolist())
        if cell.interval is not None:
            low, high = cell.interval.T.tolist()
            released = released._replace(low=low, high=high)
        true = Curve("true", Style(GREY), steps, cell.truth.astype(np.float64).tolist())
        panels.append(Panel(cell.mechanism, "step", "count", [released, true], y_log=False))
    rows = [[cell.mechanism, shown(cell.error)] for cell in cells]
    return Figure(
        f"streams-{number}",
        field.streams[contest.stream].short,
        f"True counts and one release of each mechanism, epsilon {setting.epsilon:g}, w {setting.window}."
        + (f" {BAND}" if any(cell.interval is not None for cell in cells) else ""),
        tuple(panels),
        TextTable(["mechanism", f"{field.metric} of this release"], rows),
    )


def change_figure(field: Field, changes: Sequence[Change]) -> Figure:
    """The errors of these results over those of the others, streams by mechanisms."""
    found: dict[tuple[str, str], list[float]] = {}
    for change in changes:
        found.setdefault((change.contest.stream, change.mechanism), []).append(change.ratio)
    streams = [label for label in field.streams if any(label == stream for stream, _ in found)]
    mechanisms = [label for label in field.mechanisms if any(label == mechanism for _, mechanism in found)]
    ratios = np.array([[geometric_mean(np.array(found.get((s, m), []))) for m in mechanisms] for s in streams])
    shorts = [field.streams[label].short for label in streams]
    heat = HeatMap("", shorts, mechanisms, ratios, CHANGE, _texts(ratios, lambda ratio: f"{ratio:.2f}"))
    return Figure(
        "changes",
        "What changed",
        "Errors of these results divided by those of the other ones, as geometric means over settings: blue is better "
        "now, red is worse.",
        (heat,),
        _table_of(heat),
    )


def setting_labels(settings: Sequence[Setting]) -> list[str]:
    """Each setting by what varies in its experiment."""
    labels = []
    for setting in settings:
        others = [other for other in settings if other.experiment == setting.experiment]
        parts = [f"ε {setting.epsilon:g}"] if len({other.epsilon for other in others}) > 1 else []
        parts += [f"w {setting.window}"] if len({other.window for other in others}) > 1 or not parts else []
        labels.append(" ".join(parts))
    return labels


def _sweeps(settings: Sequence[tuple[int, Setting]]) -> list[tuple[str, str, list[int]]]:
    """Places whose settings differ in epsilon alone, or in w alone, in the order of that; with a title and the axis."""
    found = []
    for axis, fixed in (("window", "epsilon"), ("epsilon", "window")):
        alike: dict[tuple[str, float], list[tuple[float, int]]] = {}
        for place, setting in settings:
            alike.setdefault((setting.experiment, getattr(setting, fixed)), []).append((getattr(setting, axis), place))
        for (_, value), varied in alike.items():
            if len(varied) > 1:
                name = {"epsilon": "epsilon", "window": "w"}[fixed]
                found.append((f"{name} = {value:g}", axis, [place for _, place in sorted(varied)]))
    return found


def _sweep_panel(
    field: Field, title: str, x_title: str, places: list[int], x: list[float], zeros: float | None
) -> Panel:
    reach = student_quantile(CONFIDENCE, field.repetitions - 1) * field.errors[places]
    curves = []
    for column, (label, style) in enumerate(styles(field).items()):
        means = field.means[places, column]
        if not np.isnan(means).all():
            low, high = (means - reach[:, column]).tolist(), (means + reach[:, column]).tolist()
            curves.append(Curve(label, style, x, means.tolist(), low, high))
    if zeros:
        curves.append(Curve("zeros", Style(GREY, dash=True), x, [zeros] * len(x)))
    return Panel(title, x_title, field.metric, curves)


def _heat(title: str, rows: list[str], columns: list[str], ratios: Floats, write: Writer) -> HeatMap:
    return HeatMap(title, rows, columns, ratios, DISTANCE, _texts(ratios, write))


def _texts(ratios: Floats, write: Writer) -> list[list[str]]:
    return [["" if np.isnan(ratio) else write(ratio) for ratio in row] for row in ratios]


def _table_of(*maps: HeatMap) -> TextTable:
    """The ratios of heat maps of the same streams, side by side."""
    columns = [f"{column}, {heat.title}" if heat.title else column for heat in maps for column in heat.columns]
    ratios = np.hstack([heat.ratios for heat in maps])
    rows = [[label, *map(shown, each)] for label, each in zip(maps[0].rows, ratios, strict=True)]
    return TextTable(["stream", *columns], rows)


def _shorts(field: Field) -> list[str]:
    return [stream.short for stream in field.streams.values()]
