"""The long audit of everything that ships; prints the page `docs/audit-results.md`.

python benchmarks/audit_results.py [--runs 300000] > docs/audit-results.md
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import eventide as ev
from eventide.audit import audit_mechanism
from eventide.mechanisms.registry import mechanism_class

ALPHA = 1e-6


def cases() -> list[tuple[str, str, dict[str, Any]]]:
    """A title, a registry name and parameters, for each mechanism and form."""
    plain: list[tuple[str, str, dict[str, Any]]] = [(name, name, {}) for name in ev.mechanism_names()]
    truncated = [(f"{name}, truncated", name, {"filter": ev.filters.Truncate()}) for name in ("uniform", "ba")]
    return plain + truncated


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=300_000)
    parser.add_argument("--window", type=int, default=3)
    options = parser.parse_args()
    print("# Audit results\n")
    print(f"Made by `benchmarks/audit_results.py` with version {ev.__version__}: epsilon 1, window {options.window}, ")
    print(f"3 bins, {options.runs:,} runs on each stream of a finalist, lower bounds at confidence 1 - 10^-6.")
    print("The last column is the exact log-ratio of the most telling transcript, where it is known.\n")
    print("| subject | epsilon is at least | claim | best attack | streams | exact log-ratio | seconds |")
    print("|---|---|---|---|---|---|---|")
    for title, name, parameters in cases():
        begin = time.perf_counter()
        verdict = audit_mechanism(
            mechanism_class(name), 1.0, options.window, 3, parameters=parameters, runs=options.runs, alpha=ALPHA
        )
        claim = "**broken**" if verdict.broken else "not refuted"
        exact = "" if verdict.proof is None else f"{verdict.proof.bound:.4f}"
        seconds = time.perf_counter() - begin
        row = (title, f"{verdict.bound:.3f}", claim, verdict.attack, verdict.pair, exact, f"{seconds:.0f}")
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
