"""`eventide ledger`: what a store has spent, what is left, and proof from its entries that no window is over.

Only reads, so a publisher may go on meanwhile.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING

import click

from eventide.cli import GUARANTEE_VIOLATED
from eventide.cli.addresses import warn_of_secrets
from eventide.cli.progress import naming

if TYPE_CHECKING:
    from eventide.live.stores.base import StoreSetting
    from eventide.live.stores.budget_report import BudgetReport

WIDTH, HEIGHT = 72, 6  # of the plot, in characters
EIGHTHS = " ▁▂▃▄▅▆▇█"


@click.command("ledger")
@click.argument("store")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document, with what each step was charged.")
@click.pass_context
def command(ctx: click.Context, store: str, as_json: bool) -> None:
    """Show what STORE has spent and what is left, and verify it.

    The charges of every window are added up from what is stored, and every row is checked for damage. With a cap, the
    loss of one person is computed instead. Exit code 4 means that a window was over epsilon, 5 that the store is
    damaged.

    \b
    Example: eventide ledger city.db
    """
    from eventide.live.stores.budget_report import budget_report
    from eventide.live.stores.open_store import open_store

    warn_of_secrets(store)
    with closing(open_store(store, read_only=True)) as opened:
        with naming("reading every row"):
            opened.verify()
        found = budget_report(opened)
    if as_json:
        click.echo(json.dumps(found.document()))
    else:
        _print(found)
    if not found.verification.holds:
        ctx.exit(GUARANTEE_VIOLATED)


def _epsilon(nano: int) -> float:
    from eventide.privacy.amounts import NANO

    return nano / NANO


def _print(found: BudgetReport) -> None:
    setting = found.epochs[-1].setting
    epsilon = _epsilon(max(epoch.setting.epsilon for epoch in found.epochs))
    click.echo(found.guarantee)
    if found.next_step:
        click.echo(f"\n{_spent(setting)}")
        for row, line in enumerate(bar_lines(found.in_windows().tolist(), epsilon, WIDTH, HEIGHT)):
            click.echo(f"{f'{epsilon:g}' if row == 0 else '':>9} │{line}")
        click.echo(f"{0:>9} └ steps 0 to {found.next_step - 1}\n")
    _print_returns(found)
    _print_epochs(found)
    _print_intrusions(found)
    if found.kept_from:
        click.echo(f"releases are kept from step {found.kept_from} on; of earlier steps the charges are\n")
    for sentence in _verdict(found):
        click.echo(sentence)


def _spent(setting: StoreSetting) -> str:
    if setting.window_sensitivity is None:
        return f"epsilon spent in the {setting.window} steps up to each step"
    return f"epsilon that one person lost in {setting.window} steps, up to each step"


def _print_returns(found: BudgetReport) -> None:
    current = found.epochs[-1]
    if found.next_step < current.measured_from:
        click.echo(f"nothing is measured before step {current.measured_from}: until then steps repeat the last release")
    click.echo("left, if nothing more is spent:")
    for one in found.returns:
        when = f" ({one.start})" if one.start else ""
        click.echo(f"  {one.left:10.6g}  at step {one.step}{when}")


def _print_epochs(found: BudgetReport) -> None:
    click.echo("\nepochs:")
    for epoch in found.epochs:
        setting = epoch.setting
        people = f"{len(setting.bins):,} bins, people {setting.people!r}"
        waited = f", measured from {epoch.measured_from}" if epoch.measured_from > epoch.first_step else ""
        click.echo(
            f"  from step {epoch.first_step}: {setting.measured_by or 'a mechanism'}, epsilon "
            f"{_epsilon(setting.epsilon):g}, window {setting.window}{_bound(setting)}, {people}"
            f"{_asked(setting)}{waited}{', after a restored backup' if epoch.restored else ''}"
        )
    click.echo("")


def _print_intrusions(found: BudgetReport) -> None:
    from eventide.live.stores.budget_report import told

    if found.intrusions:
        click.echo("intrusions:")
        for each in found.intrusions:
            click.echo(f"  {told(each)}")
        click.echo("")


def _bound(setting: StoreSetting) -> str:
    if setting.window_sensitivity is None:
        return ""
    why = f" by a cap of {setting.cap['events']} in {setting.cap['block']} steps" if setting.cap else ""
    return f", window sensitivity {setting.window_sensitivity}{why}"


def _asked(setting: StoreSetting) -> str:
    if setting.queries is None:
        return ""
    return f", of it {_epsilon(setting.queries['epsilon']):g} for {len(setting.queries['queries'])} window queries"


def _verdict(found: BudgetReport) -> list[str]:
    verification = found.verification
    if verification.holds:
        kept, worst = "no window was over epsilon", _epsilon(verification.worst)
        fullest = f"; the fullest, {worst:g}, ends at step {verification.worst_end}"
        if any(epoch.setting.window_sensitivity is not None for epoch in found.epochs):
            kept, fullest = "nobody lost more than epsilon in a window", f"; the most is {worst:g}"
        return [
            f"Verified from the stored charges of {found.next_step} steps: {kept}"
            f"{fullest if verification.worst else ''}."
        ]
    return ["NOT KEPT:", *(f"  {problem}" for problem in verification.problems)]


def bar_lines(values: Sequence[float], top: float, width: int, height: int) -> list[str]:
    """Bars as lines of text, from the top down; where there are more values than `width`, the largest of each stretch.

    A value of `top` is a bar over all lines, one above it ends in "▲".

    >>> print(*bar_lines([0, 1, 2, 4, 5], top=4, width=5, height=2), sep="|")
       █▲| ▄███
    """
    stretch = max(1, math.ceil(len(values) / width))
    tallest = [max(values[begin : begin + stretch]) for begin in range(0, len(values), stretch)]
    lines = []
    for row in range(height, 0, -1):
        line = "".join(EIGHTHS[_eighths(value / top * height - (row - 1))] for value in tallest)
        if row == height:
            line = "".join("▲" if value > top else cell for cell, value in zip(line, tallest, strict=True))
        lines.append(line)
    return lines


def _eighths(filled: float) -> int:
    """How many eighths of a cell to fill; whatever is not 0 shows."""
    return min(8, max(0, math.ceil(filled * 8 - 1e-9)))
