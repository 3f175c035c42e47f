"""The long audit of everything that ships; prints the page `docs/reference/audit-results.md`.

python benchmarks/audit_results.py [--runs 300000] > docs/reference/audit-results.md
"""

from __future__ import annotations

import argparse
import functools
import itertools
import time
from collections.abc import Iterator
from typing import Any

import eventide as ev
from eventide.audit import Verdict, audit, audit_mechanism
from eventide.audit.intrusions import IntrudedSubject, pairs_around
from eventide.audit.running_totals import audit_running_total
from eventide.mechanisms.registry import mechanism_class

ALPHA = 1e-6
COSTLY = {"tide": 10}  # one run in so many


def cases() -> list[tuple[str, str, dict[str, Any]]]:
    """A title, a registry name and parameters, for each mechanism and form."""
    plain: list[tuple[str, str, dict[str, Any]]] = [(name, name, {}) for name in ev.mechanism_names()]
    filtered = [
        (f"{name}, filter {chosen}", name, {"filter": ev.filters.by_name(chosen)})
        for name in ("uniform", "ba")
        for chosen in ("truncate", "kalman")
    ]
    histograms = [(f"{name}, span=3", name, {"span": 3}) for name in ("rg", "rg-baseline", "rg-window-baseline")]
    grouped = [(f"{name}, groups=3", name, {"groups": 3}) for name in ("bd", "ba")]
    disputed = [(f"{name}, as_published=True", name, {"as_published": True}) for name in ("dsat", "spas", "adapub")]
    return plain + filtered + histograms + grouped + disputed


def audits(runs: int) -> Iterator[tuple[str, Verdict]]:
    """Every mechanism and form, on all standard pairs."""
    for title, name, parameters in cases():
        cls, some = mechanism_class(name), runs // COSTLY.get(name, 1)
        yield title, audit_mechanism(cls, 1.0, 3, 3, parameters=parameters, runs=some, alpha=ALPHA)


def intrusions(runs: int) -> Iterator[tuple[str, Verdict]]:
    """Pan-private forms, their memory seen once in the middle of a step."""
    for name, mode, first in itertools.product(("bd", "ba"), ("single", "announced"), (True, False)):
        make = functools.partial(ev.mechanism, name, epsilon=1, window=3, bins=2, pan_private=mode)
        verdict = audit(IntrudedSubject(make, 6, first), pairs_around(6, 3, 2), 1.0, runs=runs, alpha=ALPHA)
        yield f"{name}, pan_private={mode}, changes {'before' if first else 'after'} the intrusion", verdict


def totals(runs: int) -> Iterator[tuple[str, Verdict]]:
    """Running totals, event by event and for windows."""
    for window in (1, 3):
        verdict = audit_running_total(1.0, bins=3, window=window, horizon=60, runs=runs, alpha=ALPHA)
        yield f"running total, window {window}", verdict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=300_000)
    options = parser.parse_args()
    begin = time.perf_counter()
    print("# Audit results\n")
    print(
        f"Made by `benchmarks/audit_results.py` with version {ev.__version__}: epsilon 1, window 3, 3 bins (pan-private"
    )
    print(f"forms: 2), {options.runs:,} runs on each stream of a finalist (a tenth of them for Tide, which is slower),")
    print("lower bounds at confidence 1 - 10^-6.")
    print("The last column is the exact log-ratio of the most telling transcript, where it is known.\n")
    print("| subject | epsilon is at least | claim | best attack | streams | exact log-ratio |")
    print("|---|---|---|---|---|---|")
    for title, verdict in itertools.chain(audits(options.runs), intrusions(options.runs), totals(options.runs)):
        claim = "**broken**" if verdict.broken else "not refuted"
        exact = "" if verdict.proof is None else f"{verdict.proof.bound:.4f}"
        row = (title, f"{verdict.bound:.3f}", claim, verdict.attack, verdict.pair, exact)
        print("| " + " | ".join(row) + " |", flush=True)
    print(f"\nThe whole run took {(time.perf_counter() - begin) / 60:.0f} minutes.")


if __name__ == "__main__":
    main()
