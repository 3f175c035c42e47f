"""The results of a study: one tidy Parquet file, a row for each cell and metric, with all that repeats the cell.

The file's metadata hold the study's text, the versions, what each stream looks like and which requirements of the
benchmark the study meets. The same study gives the same bytes on the same machine.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import platform
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from eventide.arrays import Floats
from eventide.bench.study.custom_mechanisms import source_digest
from eventide.bench.study.metrics import is_error
from eventide.bench.study.requirements import check_requirements
from eventide.bench.study.study import Study
from eventide.errors import InputError

Summary = list[float | None]  # mean, standard deviation and 0.95 quantile over the repetitions
CellFigures = list[Summary]  # of each metric

FORMAT = 1
NOT_PRIVATE = "Results are figures about mechanisms, computed from true counts: they are not private releases."
METADATA = b"eventide"
SCHEMA = pa.schema(
    [
        ("study", pa.string()),
        ("experiment", pa.string()),
        ("mechanism", pa.string()),
        ("mechanism_name", pa.string()),
        ("parameters", pa.string()),
        ("filter", pa.string()),
        ("stream", pa.string()),
        ("stream_source", pa.string()),
        ("stream_name", pa.string()),
        ("stream_parameters", pa.string()),
        ("steps", pa.int64()),
        ("bins", pa.int64()),
        ("epsilon", pa.float64()),
        ("window", pa.int64()),
        ("repetitions", pa.int64()),
        ("seed", pa.int64()),
        ("version", pa.string()),
        ("metric", pa.string()),
        ("mean", pa.float64()),
        ("standard_deviation", pa.float64()),
        ("q95", pa.float64()),
        ("delta", pa.float64()),
    ]
)


class Results(NamedTuple):
    """A file of results: its table, and its metadata (format, study, text, versions, streams, requirements...)."""

    table: pa.Table
    about: dict[str, Any]

    def plot(self, stream: str | None = None, metric: str | None = None) -> Any:
        """A matplotlib figure of every mechanism's error divided by the best: a heat map of streams by mechanisms.

        Of one stream, by its label or short name, the errors over w and over epsilon instead. metric: an error that was
        measured, by default the first.
        """
        from eventide.bench.report.figures import draw_results

        return draw_results(self, stream, metric)

    def __repr__(self) -> str:
        return f"Results(study={self.about['study']!r}, rows={len(self.table)})"

    def _repr_html_(self) -> str:
        from eventide.bench.report.figures import results_card

        return results_card(self)


def summaries(values: Floats) -> list[Summary]:
    """The summary of each row: a few calls for all rows, where all figures exist."""
    if values.shape[1] < 2 or np.isnan(values).any():
        return [summary(row) for row in values]
    columns = (values.mean(axis=1), values.std(axis=1, ddof=1), np.quantile(values, 0.95, axis=1))
    return np.stack(columns, axis=1).tolist()  # type: ignore[no-any-return]


def summary(values: Floats) -> Summary:
    """Mean, standard deviation and 0.95 quantile of the repetitions in which the figure exists."""
    known = values[~np.isnan(values)]
    if known.size == 0:
        return [None, None, None]
    deviation = float(known.std(ddof=1)) if known.size > 1 else None
    return [float(known.mean()), deviation, float(np.quantile(known, 0.95))]


def fingerprint(study: Study) -> str:
    """A mark that tells whether finished cells belong to this study, these data and these versions."""
    parts = [
        FORMAT,
        versions(),
        [study.seed, study.repetitions, study.metrics, dataclasses.asdict(study.options)],
        [(each.label, each.filter, each.experiments, source_digest(each.name)) for each in study.mechanisms],
        [(each.label, each.public, each.experiments, study.facts[each.label].digest) for each in study.streams],
        [dataclasses.astuple(setting) for setting in study.settings],
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def versions() -> dict[str, str]:
    """What figures may depend on, besides the study."""
    return {"eventide": version("eventide"), "numpy": np.__version__, "python": platform.python_version()}


def partial_of(out: Path) -> Path:
    """Where what is done so far stands, beside the results that it becomes."""
    return out.with_name(out.name + ".partial")


def holds_results_of(path: Path, mark: str) -> bool:
    """Whether the file holds the results with this mark already; what holds anything else is not overwritten."""
    if not path.exists():
        return False
    try:
        found = read_results(path).about["fingerprint"]
    except InputError:
        found = None
    if found != mark:
        raise InputError(
            f"{path} exists and is not the result of this study as it is now, with the code of its classes; choose "
            "another --out, or remove it"
        )
    return True


def write_results(path: Path, study: Study, mark: str, figures: list[CellFigures]) -> None:
    """Write the figures of all cells, in the study's order; the file appears whole or not at all."""
    rows = _with_delta(list(_rows(study, figures)))
    about = {
        "format": FORMAT,
        "fingerprint": mark,
        "study": study.name,
        "text": study.text,
        "seed": study.seed,
        "versions": versions(),
        "options": dataclasses.asdict(study.options),
        "streams": {stream.label: _shown(study, stream.label, stream.public) for stream in study.streams},
        "skipped": study.skipped,
        "requirements": [requirement._asdict() for requirement in check_requirements(study)],
    }
    table = pa.Table.from_pylist(rows, SCHEMA.with_metadata({METADATA: json.dumps(about)}))
    unfinished = path.with_name(path.name + ".tmp")
    pq.write_table(table, unfinished, compression="zstd")
    unfinished.replace(path)


def read_results(path: str | Path) -> Results:
    """Read a file of results.

    Parameters
    ----------
    path
        What `run_study` or `eventide bench` wrote.
    """
    path = Path(path)
    if not path.is_file():
        begun = partial_of(path).is_file()
        advice = "the study is not finished; give the `eventide bench` command again" if begun else "check the path"
        raise InputError(f"{path} is not a file; {advice}")
    try:
        table = pq.read_table(path)
        about = json.loads((table.schema.metadata or {})[METADATA])
    except (OSError, KeyError, ValueError, pa.ArrowException):
        raise InputError(f"{path} is no file of results; give one that `eventide bench` wrote") from None
    if not isinstance(about, dict) or about.get("format") != FORMAT or table.schema.names != SCHEMA.names:
        raise InputError(f"{path} holds results of another format; run the study again with this version")
    return Results(table, about)


def _rows(study: Study, figures: list[CellFigures]) -> Iterator[dict[str, Any]]:
    """A row for each cell and metric."""
    ours = versions()["eventide"]
    for cell, summaries in zip(study.cells, figures, strict=True):
        facts = study.facts[cell.stream.label]
        common = {
            "study": study.name,
            "experiment": cell.setting.experiment,
            "mechanism": cell.mechanism.label,
            "mechanism_name": cell.mechanism.name,
            "parameters": json.dumps(cell.mechanism.parameters, sort_keys=True),
            "filter": cell.mechanism.filter,
            "stream": cell.stream.label,
            "stream_source": cell.stream.source,
            "stream_name": cell.stream.name,
            "stream_parameters": json.dumps(cell.stream.described, sort_keys=True),
            "steps": facts.steps,
            "bins": facts.bins,
            "epsilon": cell.setting.epsilon,
            "window": cell.setting.window,
            "repetitions": study.repetitions,
            "seed": study.seed_of(cell),
            "version": ours,
        }
        for metric, (mean, deviation, quantile) in zip(study.metrics, summaries, strict=True):
            yield common | {"metric": metric, "mean": mean, "standard_deviation": deviation, "q95": quantile}


def _with_delta(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Errors divided by the least mean error of any mechanism on that stream under that setting."""

    def contest(row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row[key] for key in ("experiment", "stream", "epsilon", "window", "metric"))

    errors = [row for row in rows if is_error(row["metric"]) and row["mean"] is not None]
    least: dict[tuple[Any, ...], float] = {}
    for row in errors:
        least[contest(row)] = min(row["mean"], least.get(contest(row), np.inf))
    for row in errors:
        best = least[contest(row)]
        row["delta"] = row["mean"] / best if best else (1.0 if row["mean"] == 0 else np.inf)
    return rows


def _shown(study: Study, label: str, public: bool) -> dict[str, Any]:
    """What is said of a stream; of one that is not public its shape alone."""
    facts = dataclasses.asdict(study.facts[label])
    shown = facts if public else {key: facts[key] for key in ("steps", "bins")}
    return shown | {"public": public}


class MechanismStanding(NamedTuple):
    """How a mechanism fares by the first error the study measures: in how many contests it is best, and how near."""

    mechanism: str
    contests: int
    best: int
    median_delta: float


def standings(results: Results) -> list[MechanismStanding]:
    """Mechanisms by their median deterioration against the best of each stream and setting; empty without errors."""
    rows = [row for row in results.table.to_pylist() if row["delta"] is not None]
    deltas: dict[str, list[float]] = {}
    for row in rows:
        if row["metric"] == rows[0]["metric"]:
            deltas.setdefault(row["mechanism"], []).append(row["delta"])
    found = [
        MechanismStanding(name, len(each), each.count(1.0), float(np.median(each))) for name, each in deltas.items()
    ]
    return sorted(found, key=lambda standing: standing.median_delta)
