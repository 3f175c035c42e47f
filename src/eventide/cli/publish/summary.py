"""The part of `eventide publish` that says what was done, as a document and in sentences.

How many events were taken or refused is raw: it stands apart (`eventide.live.feeds.operators_only`).
"""

from __future__ import annotations

import math
from typing import Any

from eventide.cli.publish import Options
from eventide.live.addresses import without_secrets
from eventide.live.publisher.publisher import Publisher
from eventide.live.publisher.setup import guarantee_of
from eventide.mechanisms.several import Several
from eventide.windows.answering.answers import Answers


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


def predicted(publisher: Publisher) -> dict[str, Any]:
    """What is known before anything is spent: errors of looks and of answers, and that no window goes over epsilon."""
    unit = float(publisher.feed.promise().counted_in)
    smallest, largest = (unit * scale for scale in publisher.mechanism.noise_range())
    questions = publisher.questions
    return {
        "dry_run": True,
        "smallest_error_of_a_look": smallest,
        "largest_error_of_a_look": largest if math.isfinite(largest) else None,
        **_of_histograms(publisher, unit),
        "worst_window_spent_at_most": publisher.epsilon,
        **({"errors_are_in": "events"} if isinstance(publisher.mechanism, Several) else {}),
    } | ({} if questions is None else {"standard_errors": standard_errors(questions.start(publisher.mechanism))})


def _of_histograms(publisher: Publisher, unit: float) -> dict[str, Any]:
    """The noise of histograms of sliding windows, where there are any."""
    mechanism = publisher.mechanism
    if (known := mechanism.window_noise_range()) is None:
        return {}
    smallest, largest = (unit * scale for scale in known)
    span = getattr(mechanism, "span", None)
    return {"span": span, "smallest_scale_of_a_histogram": smallest, "largest_scale_of_a_histogram": largest}


def not_checked(options: Options) -> list[str]:
    """What only a start finds out, which a dry run says of a store that is there."""
    if options.store is None:
        return []
    return ["Not checked: whether the store is a copy of one that is in use; a start looks for that."]


def answers_told(report: dict[str, Any]) -> list[str]:
    """The error of every query that is answered beside the releases."""
    errors = report.get("standard_errors", [])
    told = [f"{each['query']}: {each['standard_error']:,.3g}" for each in errors if each["standard_error"] is not None]
    return [f"Expected standard error of the answers to window queries: {'; '.join(told)}."] if told else []


def standard_errors(answers: Answers) -> list[dict[str, Any]]:
    """The error of every query's answers, known beforehand; none for a query that no window of the stream answers."""
    factor = answers.ledger.window * answers.sensitivity
    return [
        {"query": str(query), "standard_error": None if math.isnan(error) else factor * math.sqrt(error)}
        for query, error in zip(answers.plan.queries, answers.plan.query_errors.tolist(), strict=True)
    ]


def summary(report: dict[str, Any]) -> str:
    """One sentence."""
    bins = f"{report['bins']:,} {'bin' if report['bins'] == 1 else 'bins'}"
    capped = report["window_sensitivity"] is not None
    steps = "any single step" if report["window"] == 1 else f"any {report['window']} steps"
    if "dry_run" in report:
        checked = bins if report["steps"] is None else f"{report['steps']:,} steps of {bins}"
        smallest, largest = report["smallest_error_of_a_look"], report["largest_error_of_a_look"]
        if smallest == largest:
            range_of_errors = ""
        else:
            upto = " or more" if largest is None else f" to {largest:,.3g}"
            range_of_errors = f"{upto}, depending on how much budget it gets"
        return (
            f"Checked {checked}; nothing was published or charged. Expected error of one measurement"
            f"{' in events' if 'errors_are_in' in report else ''}: {smallest:,.3g}{range_of_errors}. "
            f"{f'One person would lose in {steps}' if capped else f'{steps.capitalize()} would spend'} at most "
            f"{report['epsilon']:g} of epsilon.{_histograms(report)}"
        )
    spent = f"One person lost in {steps}" if capped else f"{steps.capitalize()} spent"
    return (
        f"Published {report['steps']:,} steps of {bins} to {report['out'] or 'standard output'}; "
        f"{report['fresh_looks']:,} of the steps were measured. {spent} at most "
        f"{report['worst_window_spent']:g} of epsilon {report['epsilon']:g}."
    )


def _histograms(report: dict[str, Any]) -> str:
    if "span" not in report:
        return ""
    smallest, largest = report["smallest_scale_of_a_histogram"], report["largest_scale_of_a_histogram"]
    scales = f"{smallest:,.3g}" + (f" to {largest:,.3g}" if largest > smallest else "")
    return f" Expected noise scale of a histogram of the last {report['span']} steps: {scales}."
