"""The table of a paper: the mean error of every mechanism, a row for each stream and setting, as CSV or LaTeX.

Both are of one metric and name it. CSV holds every figure with its standard error, for another program to read.
LaTeX holds three digits, the best of each row in bold, and needs the package booktabs alone.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from pathlib import Path

from eventide.bench.report.scores import Contest, Scores
from eventide.display.replacing import refuse_foreign
from eventide.errors import InputError

SPECIAL = {character: rf"\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}


PLACE = ["experiment", "stream", "epsilon", "window"]
HEADINGS = ["stream", r"$\varepsilon$", "$w$"]


def table_writer(path: Path) -> Callable[[Scores], str]:
    """What writes the table, by the ending of its file; a file that is there must be such a table."""
    try:
        write = {".csv": as_csv, ".tex": as_latex}[path.suffix.lower()]
    except KeyError:
        raise InputError(f"--table {path} has no ending that is known; use .csv or .tex") from None
    refuse_foreign(path, ",".join(PLACE).encode(), " & ".join(HEADINGS).encode())
    return write


def as_csv(scores: Scores) -> str:
    """Every mean, and the standard errors behind the means; an empty cell where a mechanism takes no part."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    errors = [f"{mechanism} (standard error)" for mechanism in scores.mechanisms]
    table.writerow([*PLACE, "metric", "repetitions", *scores.mechanisms, *errors])
    for row, contest in enumerate(scores.contests):
        figures = [*scores.means[row].tolist(), *scores.errors[row].tolist()]
        table.writerow(
            [
                *_place(scores, contest),
                scores.metric,
                scores.repetitions,
                *("" if math.isnan(figure) else figure for figure in figures),
            ]
        )
    return text.getvalue()


def as_latex(scores: Scores) -> str:
    """A tabular of means."""
    several = len({contest.setting.experiment for contest in scores.contests}) > 1
    headings = [*(["experiment"] if several else []), *HEADINGS]
    lines = [
        f"% mean of {scores.metric} over {scores.repetitions} repetitions; the least of each row in bold",
        rf"\begin{{tabular}}{{{'l' * (len(headings) - 2)}rr{'r' * len(scores.mechanisms)}}}",
        r"\toprule",
        _line([*headings, *map(_escaped, scores.mechanisms)]),
        r"\midrule",
    ]
    for row, contest in enumerate(scores.contests):
        experiment, stream, epsilon, window = _place(scores, contest)
        place = [*([_escaped(experiment)] if several else []), _escaped(stream), f"{epsilon:g}", f"{window}"]
        best = scores.least[row]
        lines.append(_line([*place, *(_figure(mean, mean == best) for mean in scores.means[row].tolist())]))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _place(scores: Scores, contest: Contest) -> tuple[str, str, float, int]:
    """Where it was measured; a stream that stands alone needs all its parameters to be known by."""
    setting = contest.setting
    stream = scores.streams[contest.stream].short if len(scores.streams) > 1 else contest.stream
    return setting.experiment, stream, setting.epsilon, setting.window


def _figure(mean: float, best: bool) -> str:
    """Three digits, without the exponents that LaTeX would set as text."""
    if math.isnan(mean):
        return "--"
    digits = max(0, 2 - math.floor(math.log10(mean))) if mean > 0 else 0
    shown = f"{mean:,.{digits}f}"
    return rf"\textbf{{{shown}}}" if best else shown


def _escaped(text: str) -> str:
    return "".join(SPECIAL.get(character, character) for character in text)


def _line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"
