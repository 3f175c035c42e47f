"""Do our mechanisms agree with the public Java benchmark on its own streams?

Prints, for each mechanism, the ratio of our mean absolute error to the published-code figure: geometric mean and worst
cell at amplitudes of 100 and above. The reference folder holds `java_benchmark_streams.csv` (the streams) and
`java_benchmark_artificial.csv` (the figures).

    python benchmarks/java_agreement.py REFERENCE_FOLDER [--mechanisms uniform,sample,bd,ba] [--replicas 100]
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

import eventide as ev
from eventide.arrays import Floats, Ints


class Cell(NamedTuple):
    """A stream and a privacy setting."""

    season: int
    amplitude: int
    epsilon: float
    window: int


def read_streams(folder: Path) -> dict[tuple[int, int], Ints]:
    """The 20 streams by season and amplitude, rounded to whole counts; the few cells below 0 are raised to it."""
    with (folder / "java_benchmark_streams.csv").open() as file:
        names = next(csv.reader(file))[1:]
        matrix = np.maximum(np.rint(np.loadtxt(file, delimiter=",")[:, 1:]), 0).astype(np.int64)
    keys = [(int(name[1:].split("_a")[0]), int(name.split("_a")[1])) for name in names]
    return {key: matrix[:, column] for column, key in enumerate(keys)}


def read_figures(folder: Path) -> dict[str, dict[Cell, float]]:
    """The Java code's mean absolute errors by mechanism and cell; the (1, 120) setting stands there twice."""
    figures: dict[str, dict[Cell, list[float]]] = {}
    with (folder / "java_benchmark_artificial.csv").open() as file:
        for row in csv.DictReader(file):
            cell = Cell(int(row["season"]), int(row["amplitude"]), float(row["epsilon"]), int(row["window"]))
            figures.setdefault(row["mechanism"], {}).setdefault(cell, []).append(float(row["mae_mean"]))
    return {name: {cell: float(np.mean(maes)) for cell, maes in cells.items()} for name, cells in figures.items()}


def our_errors(name: str, cells: list[Cell], streams: dict[tuple[int, int], Ints], replicas: int) -> dict[Cell, float]:
    """Mean absolute errors of our mechanism: all streams of one setting are replicas of one run."""
    errors = {}
    keys = list(streams)
    truth = np.repeat(np.stack([streams[key] for key in keys]), replicas, axis=0)[:, :, None]
    for epsilon, window in sorted({(cell.epsilon, cell.window) for cell in cells}):
        mechanism = ev.mechanism(name, epsilon=epsilon, window=window, bins=1, replicas=len(truth), seed=window)
        error: Floats = np.abs(ev.run(mechanism, truth).values - truth).mean(axis=(1, 2))
        for key, mean in zip(keys, error.reshape(len(keys), replicas).mean(axis=1), strict=True):
            errors[Cell(*key, epsilon, window)] = float(mean)
    return errors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--mechanisms", default="uniform,sample,bd,ba")
    parser.add_argument("--replicas", type=int, default=100)
    options = parser.parse_args()
    streams, figures = read_streams(options.reference), read_figures(options.reference)
    print(f"{'mechanism':10} {'geometric mean':>15} {'lowest':>8} {'highest':>8} {'seconds':>8}")
    for name in options.mechanisms.split(","):
        cells = [cell for cell in figures[name] if cell.amplitude >= 100]
        begin = time.perf_counter()
        ours = our_errors(name, cells, streams, options.replicas)
        ratios = np.array([ours[cell] / figures[name][cell] for cell in cells])
        mean = np.exp(np.log(ratios).mean())
        seconds = time.perf_counter() - begin
        print(f"{name:10} {mean:15.4f} {ratios.min():8.3f} {ratios.max():8.3f} {seconds:8.1f}")


if __name__ == "__main__":
    main()
