"""What an account adds to a step: a charge and a settlement, while 100 publications share it.

One process takes all places by turns, so no time is spent on waiting for others. Run:

    python benchmarks/account_steps.py ADDRESS [--publications 100] [--steps 20]

ADDRESS is the path of a file, or postgresql://host/database#name, where nothing is yet.
"""

from __future__ import annotations

import argparse
import statistics
import time

from eventide.live.accounts.open_account import create_account, open_account
from eventide.live.accounts.windows import Terms
from eventide.privacy.amounts import NANO

HOUR = 3_600_000_000  # microseconds


def main() -> None:
    """Measure and print."""
    asked = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    asked.add_argument("address")
    asked.add_argument("--publications", type=int, default=100)
    asked.add_argument("--steps", type=int, default=20)
    given = asked.parse_args()
    create_account(given.address, "people", 1, "7d")
    terms = Terms(NANO // given.publications, window=169, length=HOUR)
    took = []
    with open_account(given.address) as account:
        seats = [account.join(str(name), terms, 0) for name in range(given.publications)]
        for step in range(given.steps):
            for seat in seats:
                begin = time.perf_counter()
                account.charge(seat, step * HOUR, (step + 1) * HOUR)
                account.settle(seat, (step + 1) * HOUR)
                took.append(1000 * (time.perf_counter() - begin))
    median, most = statistics.median(took), statistics.quantiles(took, n=20)[-1]
    print(f"added to a step: median {median:.2f} ms, 95 % of them within {most:.2f} ms")


if __name__ == "__main__":
    main()
