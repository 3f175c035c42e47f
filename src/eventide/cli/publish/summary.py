"""The part of `eventide publish` that says what was done, as a document and in sentences.

How many events were taken or refused is raw: it stands apart (`eventide.live.feeds.operators_only`).
"""

from __future__ import annotations

from typing import Any

from eventide.cli.publish import Options
from eventide.live.addresses import without_secrets
from eventide.live.publisher.prediction import of_bins, of_window
from eventide.live.publisher.publisher import Publisher
from eventide.live.publisher.setup import guarantee_of


def described(options: Options, publisher: Publisher) -> dict[str, Any]:
    """What is published, and what is promised."""
    mechanism, kept = publisher.mechanism, options.store is not None
    guarantee = guarantee_of(mechanism, publisher.feed, publisher.questions, kept=kept, account=publisher.account)
    return {
        "mechanism": options.spec.mechanism,
        "filter": options.spec.filter,
        "bins": mechanism.size,
        "epsilon": publisher.epsilon,
        "window": mechanism.window,
        "sensitivity": mechanism.sensitivity,
        "window_sensitivity": mechanism.window_sensitivity,
        "store": options.store and without_secrets(options.store),
        "next_step": publisher.next_step,
        "guarantee": str(guarantee),
    }


def not_checked(options: Options, *, rows: bool) -> list[str]:
    """What only a start finds out: of events that were not read, and of a store that is there."""
    lines = []
    if not rows:
        lines.append("Not checked: the rows of events. A start stops before the first release if most are refused.")
    if options.store is not None:
        lines.append("Not checked: whether the store is a copy of one that is in use; a start looks for that.")
    return lines


def summary(report: dict[str, Any]) -> str:
    """One sentence about what was published."""
    steps = of_window(report)
    spent = f"One person lost in {steps}" if report["window_sensitivity"] is not None else f"{steps.capitalize()} spent"
    if not report["steps"] and report["store"] is not None:
        return (
            f"Nothing new was published: the store has {report['next_step']:,} steps of {of_bins(report)}, and "
            f"{_outputs(report)}. {spent} at most {report['worst_window_spent']:g} of epsilon {report['epsilon']:g}."
        )
    return (
        f"Published {report['steps']:,} {'step' if report['steps'] == 1 else 'steps'} of {of_bins(report)} to "
        f"{report['out'] or 'standard output'}; {report['fresh_looks']:,} of the steps "
        f"{'was' if report['fresh_looks'] == 1 else 'were'} measured. {spent} at most "
        f"{report['worst_window_spent']:g} of epsilon {report['epsilon']:g}."
    )


def _outputs(report: dict[str, Any]) -> str:
    """What became of the outputs of a run that published nothing."""
    if report["out"] is None:
        return "standard output got none of them again; eventide export STORE --out - gives all"
    return f"{report['out']} has what it lacked of them"
