"""The ledger and the guarantee as people see them: cards for notebooks, and a picture of what was charged.

Reads budgets, which are public, and never a count. Imported when something is shown.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eventide.display.cards import card
from eventide.display.drawings import COLOURS, GREY, Curve, Panel, Style, stepped
from eventide.display.images import draw
from eventide.privacy.amounts import NANO
from eventide.privacy.capped_ledger import CappedLedger
from eventide.privacy.guarantees import Guarantee
from eventide.privacy.ledger import WindowLedger


def guarantee_card(guarantee: Guarantee) -> str:
    """The sentence, below what must not be overlooked."""
    if guarantee.not_private:
        title = "Not private"
    elif guarantee.refuted:
        title = "Refuted"
    elif guarantee.not_proven:
        title = "Not proven"
    else:
        title = f"{guarantee.notion} privacy"
    return card(title, {}, notes=[str(guarantee)])


def ledger_card(ledger: WindowLedger) -> str:
    """What every window may hold, and how much was held."""
    if isinstance(ledger, CappedLedger):
        every = (
            f"window of {ledger.protected_window:,} steps of one person, {ledger.nano_epsilon / NANO:g} for every step"
        )
    else:
        every = "step" if ledger.window == 1 else f"window of {ledger.window:,} steps"
    return card("Ledger", {"budget": f"epsilon {ledger.epsilon:g} for every {every}", **ledger_facts(ledger)})


def ledger_facts(ledger: WindowLedger) -> dict[str, str]:
    """How far a ledger is; of several accounts, that of the fullest."""
    facts = {
        "next step": f"{ledger.step:,}",
        "left at this step": f"{np.min(ledger.left()):g}",
        "fullest window so far": f"{np.max(ledger.worst_window()):g} of {ledger.epsilon:g}",
    }
    accounts = ledger.accounts[0] * ledger.accounts[1]
    return facts if accounts == 1 else facts | {"accounts": f"{accounts:,}; shown is the fullest"}


def draw_ledger(ledger: WindowLedger) -> Any:
    """The window that ends at this step, of the fullest account: what each step was charged, and their sum."""
    begin, charges, spans = ledger.window_charges()
    fullest = int(ledger.left_nano().argmin())
    lost, open_lost = ledger.loss(charges), ledger.loss(spans)
    charged, open_spans = lost.reshape(len(lost), -1)[:, fullest] / NANO, float(open_lost.flat[fullest]) / NANO
    x, steps = stepped(begin, charged)
    _, sums = stepped(begin, open_spans + np.cumsum(charged))
    ends, worst = [x[0], x[-1]], float(np.max(ledger.worst_window()))
    curves = [
        Curve("epsilon", Style(COLOURS[1], dash=True), ends, [ledger.epsilon] * 2),
        Curve("fullest window so far", Style(GREY, dash=True), ends, [worst] * 2),
        Curve("sum over the window", Style(COLOURS[0]), x, sums),
        Curve("charged to the step", Style(COLOURS[2]), x, steps, [0.0] * len(x), steps),
    ]
    if open_spans:
        curves.append(Curve("open spans", Style(COLOURS[4], dash=True), ends, [open_spans] * 2))
    spent = f"{sums[-1]:.4g} of epsilon {ledger.epsilon:g}"
    if isinstance(ledger, CappedLedger):
        title = f"{spent} is what one person can lose by the charges of this step"
    else:
        title = f"{spent} is spent in the window of {ledger.window:,} steps that ends now"
    return draw(title, [Panel("", "step", "epsilon", curves, y_log=False)])
