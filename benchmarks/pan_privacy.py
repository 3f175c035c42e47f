"""What pan-privacy costs: the error of BA with and without it, on three real streams.

`announced` and `single` have one step open at a time, as from a pipe or NATS without lateness; `two open` is `single`
with the next step open before the last one closes, as from a followed file, Kafka or the service. Run:

    EVENTIDE_DATA=folder python benchmarks/pan_privacy.py [--epsilon 1] [--window 24] [--runs 5]

Prints the mean absolute error of a bin at a step, and that of the form without pan-privacy in the same column.
"""

from __future__ import annotations

import argparse

import numpy as np

import eventide as ev
from eventide.arrays import Floats, Ints
from eventide.streams.real import data_folder, read_real

STREAMS = ("bike_sharing", "taxi_porto", "flu_outpatient")
FORMS = {"none": (None, 1), "announced": ("announced", 1), "single": ("single", 1), "two open": ("single", 2)}
STEPS = 2_000  # of a longer stream the first


def released(counts: Ints, form: str, epsilon: float, window: int, seed: int) -> list[Floats]:
    """The releases of one run."""
    mode, depth = FORMS[form]
    mechanism = ev.BudgetAbsorption(epsilon, window, counts.shape[1], pan_private=mode, seed=seed)
    if mode is not None:
        mechanism.hold_several_steps()
    values = []
    for step, row in enumerate(counts):
        if mode is not None:
            mechanism.open_until(step + depth - 1)
        values.append(mechanism.release(row).values)
    return values


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("--epsilon", type=float, default=1)
    asked.add_argument("--window", type=int, default=24)
    asked.add_argument("--runs", type=int, default=5)
    given = asked.parse_args()
    folder = data_folder()
    if folder is None:
        raise SystemExit("name the folder of the real streams with EVENTIDE_DATA")
    for name in STREAMS:
        counts = np.asarray(read_real(name, folder).counts)[:STEPS]
        print(f"{name}: {len(counts)} steps, {counts.shape[1]} bins, mean count {counts.mean():.1f}")
        for form in FORMS:
            errors = [
                np.abs(np.array(released(counts, form, given.epsilon, given.window, seed)) - counts).mean()
                for seed in range(given.runs)
            ]
            print(f"  {form:10} {np.mean(errors):8.2f}")


if __name__ == "__main__":
    main()
