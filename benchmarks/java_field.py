"""Every published mechanism next to the figures of the public Java benchmark, on its own streams.

Prints, for each mechanism, the geometric mean of our mean absolute error over Java's by amplitude and over all cells,
in how many cells we differ by more than 10 %, and why. The reference folder is that of `java_agreement.py`.

    python benchmarks/java_field.py REFERENCE_FOLDER [--replicas 100]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from java_agreement import our_errors, read_figures, read_streams

from eventide.bench.reproduction.reference import WHY

AMPLITUDES = (10, 100, 1000, 10_000)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--replicas", type=int, default=100)
    options = parser.parse_args()
    streams, figures = read_streams(options.reference), read_figures(options.reference)
    heads = "".join(f"{f'a={amplitude}':>9}" for amplitude in AMPLITUDES)
    print(f"{'mechanism':10}{'all cells':>10}{heads}{'lowest':>9}{'highest':>9}{'off >10 %':>11}{'seconds':>9}")
    for name, why in WHY.items():
        begin = time.perf_counter()
        cells = list(figures[name])
        ours = our_errors(name, cells, streams, options.replicas)
        ratios = np.array([ours[cell] / figures[name][cell] for cell in cells])
        amplitude = np.array([cell.amplitude for cell in cells])
        means = [np.exp(np.log(ratios[amplitude == a]).mean()) for a in AMPLITUDES]
        off = f"{np.count_nonzero(np.abs(np.log(ratios)) > np.log(1.1))} of {len(cells)}"
        print(
            f"{name:10}{np.exp(np.log(ratios).mean()):10.3f}{''.join(f'{mean:9.3f}' for mean in means)}"
            f"{ratios.min():9.3f}{ratios.max():9.3f}{off:>11}{time.perf_counter() - begin:9.1f}"
        )
        print(f"{'':10}{why}")


if __name__ == "__main__":
    main()
