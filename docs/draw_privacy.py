"""Draws what w-event privacy means: neighbouring streams, windows over charges, and what is hidden.

python docs/draw_privacy.py

writes `docs/images/privacy-*.svg`. The streams are made up; the charges are those of a real run.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from drawing import Sheet

import eventide as ev

IMAGES = Path(__file__).parent / "images"
BINS = ("harbour", "market", "station")
WINDOW = 4


def neighbours() -> Sheet:
    """One week of a small town, twice: the second time without one person's four days."""
    sheet = Sheet(760, 372, "Two neighbouring streams, equal but for what one person did inside four steps in a row")
    crowd = np.random.default_rng(4).integers(1, 5, (len(BINS), 9))
    person = {2: 1, 3: 0, 5: 2}  # step: bin
    step_width, row, left = 68, 38, 92
    for stream, (top, title) in enumerate([(34, "a stream"), (212, "its neighbour")]):
        sheet.text(14, top - 10, title)
        begin = left + 2 * step_width
        sheet.box(begin - 4, top - 4, WINDOW * step_width, 3 * row + 8, "frame", 6)
        for bin_number, name in enumerate(BINS):
            y = top + row * (bin_number + 0.5)
            sheet.text(left - 12, y + 4, name, "dim", "end")
            for step in range(crowd.shape[1]):
                x = left + step * step_width + 8
                others = [(x + 11 * i, y) for i in range(crowd[bin_number, step])]
                sheet.dots(others, "crowd", 4)
                if stream == 0 and person.get(step) == bin_number:
                    sheet.dots([(x + 11 * len(others), y)], "person", 4.6)
        for step in range(crowd.shape[1]):
            sheet.text(left + step * step_width + 24, top + 3 * row + 22, f"{step}", "dim", "middle")
    sheet.text(left + 4 * step_width, 200, f"any w = {WINDOW} steps in a row", "dim", "middle")
    sheet.dots([(left + 250, 362)], "person", 4.6)
    sheet.text(left + 260, 366, "one person, at one place a step")
    return sheet


def windows() -> Sheet:
    """What each step was charged, and the sums of three of the windows."""
    steps, epsilon, window = 24, 1.0, 8
    counts = np.array([[40]] * 9 + [[160]] * 7 + [[90]] * 8)
    mechanism = ev.BudgetAbsorption(epsilon=epsilon, window=window, bins=1, seed=5)
    spent = ev.run(mechanism, counts).spent
    sheet = Sheet(760, 300, "Charges of 24 steps; every window of eight steps holds at most epsilon")
    left, width, foot = 60, 28, 128
    edges = [left + width * step for step in range(steps + 1)]
    sheet.text(left, 22, f"charge of each step; epsilon {epsilon:g}, w = {window}")
    scale = 86 / spent.max()
    sheet.bars(edges, foot, spent * scale, "charge", 4)
    sheet.line([(left, foot), (edges[-1], foot)], "rule", 1)
    for step in range(0, steps, 4):
        sheet.text(edges[step] + width / 2, foot + 16, str(step), "dim", "middle")
    sheet.text(left, 172, "three of the windows, and what their steps were charged together", "dim")
    for row, begin in enumerate((3, 4, 12)):
        y = 184 + 34 * row
        total = spent[begin : begin + window].sum()
        sheet.box(edges[begin], y, window * width, 24, "safe", 5)
        sheet.text(edges[begin] + window * width / 2, y + 16, f"{total:.3f}", anchor="middle")
        sheet.text(edges[begin + window] + 10, y + 16, f"steps {begin} to {begin + window - 1}", "dim")
    return sheet


def hidden() -> Sheet:
    """One person's fortnight: which stretches are hidden, and how well."""
    sheet = Sheet(760, 268, "What is hidden of one person's fortnight with a window of three days")
    left, width = 60, 48
    events = (1, 2, 3, 8, 12)
    sheet.text(14, 24, "one person's visits over fourteen days, with w = 3 days")
    sheet.line([(left, 58), (left + 14 * width, 58)], "rule", 1)
    sheet.dots([(left + width * (day + 0.5), 58) for day in events], "person", 5)
    for day in range(14):
        sheet.text(left + width * (day + 0.5), 82, str(day + 1), "dim", "middle")
    rows = [
        ([(1, 4)], "safe", "three days in a row: factor e^epsilon at most"),
        ([(8, 9)], "safe", "a single visit: the same"),
        ([(1, 4), (8, 9)], "frame", "both together: two windows, e^(2 epsilon)"),
        ([(1, 4), (8, 9), (12, 13)], "frame", "a habit seen for weeks: epsilon for each window, without end"),
    ]
    for row, (stretches, kind, words) in enumerate(rows):
        y = 100 + 40 * row
        for begin, end in stretches:
            sheet.box(left + width * begin + 3, y, width * (end - begin) - 6, 16, kind, 5)
        sheet.text(left, y + 31, words, "dim")
    return sheet


def caps() -> Sheet:
    """What a cap of one event a block lets in, with and without two of a person's events."""
    sheet = Sheet(
        760, 268, "Blocks of six steps with one counted event each, and a window of six steps across two of them"
    )
    left, width, block, window = 118, 34, 6, range(3, 9)
    sheet.text(14, 24, "one person's events; the first of every block of six steps counts")
    for begin in range(0, 18, block):
        sheet.box(left + width * begin + 2, 42, width * block - 4, 150, "safe", 6)
        sheet.text(left + width * (begin + block / 2), 58, f"block {begin // block + 1}", "dim", "middle")
    sheet.box(left + width * window[0], 64, width * len(window), 122, "frame", 4)
    sheet.text(left + width * 6, 206, "any w = 6 steps in a row", "dim", "middle")
    for y, name, events in ((96, "one stream", (3, 5, 6, 9, 14)), (150, "its neighbour", (5, 9, 14))):
        sheet.text(left - 12, y + 4, name, "dim", "end")
        sheet.line([(left, y), (left + 18 * width, y)], "rule", 1)
        counted = {min(step for step in events if step // block == number) for number in range(3)}
        for kind, steps in (("person", counted), ("crowd", set(events) - counted)):
            sheet.dots([(left + width * (step + 0.5), y) for step in sorted(steps)], kind, 5.5)
    for step in range(18):
        sheet.text(left + width * (step + 0.5), 124, str(step), "dim", "middle")
    sheet.dots([(left + 6, 232)], "person", 5.5)
    sheet.text(left + 18, 236, "counts")
    sheet.dots([(left + 86, 232)], "crowd", 5.5)
    sheet.text(left + 98, 236, "does not: the block is full")
    sheet.text(
        left, 258, "Without the events at 3 and 6 those at 5 and 9 count: four changes by one, 2 cap n in all.", "dim"
    )
    return sheet


def main() -> None:
    """Draw all four."""
    for drawing in (neighbours, windows, hidden, caps):
        drawing().save(IMAGES / f"privacy-{drawing.__name__}.svg")


if __name__ == "__main__":
    main()
