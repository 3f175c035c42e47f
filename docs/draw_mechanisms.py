"""Draws every registered mechanism at work on one synthetic stream, for the page of their ideas.

python docs/draw_mechanisms.py

writes `docs/images/mechanism-NAME.svg`. The stream is made up, and so its true counts may be shown; the noise is
seeded, so that the pictures stay the same until a mechanism changes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from drawing import Sheet, steps

import eventide as ev
from eventide.arrays import Floats, Ints

EPSILON, WINDOW, SEED = 1.0, 20, 3
STEPS = 160
WIDTH, HEIGHT = 720, 250
LEFT, RIGHT, TOP, MIDDLE, FOOT = 48, 708, 34, 168, 236  # edges of the two panels


def stream() -> Ints:
    """Four bins, two large and two small, that are calm, jump together, slide, swing and are calm again."""
    step = np.arange(STEPS)
    level = np.select([step < 47, step < 85], [160.0, 320.0 - 1.8 * (step - 47)], 220.0)
    swing = np.where((step >= 90) & (step < 130), 70 * np.sin((step - 90) * 2 * np.pi / 20), 0.0)
    jitter = np.random.default_rng(SEED).normal(0, 4, STEPS)
    counts: Ints = np.rint(np.outer(level + swing + jitter, [1.0, 0.8, 0.1, 0.05])).astype(np.int64)
    return counts


def picture(name: str, counts: Ints) -> Sheet:
    """The first bin above, true and released, with the steps that were looked at; what each step was charged below."""
    mechanism = ev.mechanism(name, epsilon=EPSILON, window=WINDOW, bins=counts.shape[1], seed=SEED)
    run = ev.run(mechanism, counts)
    true, released = counts[:, 0], run.values[:, 0]
    sheet = Sheet(WIDTH, HEIGHT, f"{name}: true and released counts, looks and charges over {STEPS} steps")
    edges = list(np.linspace(LEFT, RIGHT, STEPS + 1))
    top = 420.0

    def height(values: Floats | Ints) -> list[float]:
        return list(np.clip(MIDDLE - values / top * (MIDDLE - TOP), TOP, MIDDLE))

    for count in (0, 200, 400):
        (y,) = height(np.array([count]))
        sheet.line([(LEFT, y), (RIGHT, y)], "rule", 0.6)
        sheet.text(LEFT - 6, y + 4, str(count), "dim", "end")
    sheet.line(steps(edges, height(true)), "true", 1.3)
    sheet.line(steps(edges, height(released)), "private", 1.6)
    looked = np.flatnonzero(run.fresh)
    sheet.dots([(edges[step] + 2, MIDDLE + 7) for step in looked], "look", 1.5)

    most = max(run.spent.max(), EPSILON / WINDOW)
    sheet.line([(LEFT, FOOT), (RIGHT, FOOT)], "rule", 0.6)
    sheet.bars(edges, FOOT, run.spent / most * (FOOT - MIDDLE - 22), "charge")
    sheet.text(LEFT - 6, MIDDLE + 24, f"{most:.2g}", "dim", "end")
    sheet.text(LEFT - 6, FOOT, "0", "dim", "end")
    legend(sheet, run, np.abs(released - true).mean())
    return sheet


def legend(sheet: Sheet, run: ev.Run, error: float) -> None:
    """What the lines mean, and three figures."""
    for x, kind, words in ((LEFT, "true", "true"), (LEFT + 70, "private", "released")):
        sheet.line([(x, 16), (x + 22, 16)], kind, 2)
        sheet.text(x + 28, 20, words)
    sheet.dots([(LEFT + 170, 16)], "look", 2.5)
    sheet.text(LEFT + 178, 20, "look")
    sheet.box(LEFT + 226, 11, 10, 10, "charge")
    sheet.text(LEFT + 242, 20, "charge")
    looks = np.count_nonzero(run.fresh)
    sheet.text(RIGHT, 20, f"{looks} looks, off by {error:.0f} on average", "dim", "end")


def main() -> None:
    """Draw them all."""
    counts = stream()
    for name in ev.mechanism_names():
        picture(name, counts).save(Path(__file__).parent / "images" / f"mechanism-{name}.svg")


if __name__ == "__main__":
    main()
