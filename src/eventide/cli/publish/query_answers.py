"""The part of `eventide publish` that answers window queries instead of releasing every step.

The whole file is checked and its steps counted before the first answer; the number of steps, which is taken to be no
secret, is the plan's horizon where the steps of the queries have a longer cycle.
"""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from eventide import windows
from eventide.arrays import Ints
from eventide.cli.progress import with_progress
from eventide.cli.publish import Options
from eventide.cli.publish.inputs import open_count_file, refuse_to_replace
from eventide.errors import InputError
from eventide.live.feeds.count_feed import LENGTH_IS_PUBLIC
from eventide.live.publisher.prediction import standard_errors
from eventide.live.publisher.window_queries import Questions
from eventide.privacy.guarantees import Guarantee
from eventide.releases.answer_formats import ANSWER_FORMATS, AnswerRows
from eventide.releases.files import ReleaseFile, open_releases
from eventide.windows.answering.answers import Answers

CHUNK_CELLS = 1 << 20  # counts that are pushed at a time
FILTERS = ("truncate", "none")


def publish_answers(options: Options) -> tuple[dict[str, Any], list[str]]:
    """Answer the queries of a file on a file of counts; give a report and a sentence about it."""
    _refuse_what_is_for_steps(options)
    counts, spec = open_count_file(options), options.spec
    window, asked = spec.window or 1, spec.queries
    questions = Questions(asked, spec.epsilon, spec.queries_of)
    names = questions.names(counts.bins)
    with open_releases(options.out, names, options.layout, counts.path, ANSWER_FORMATS) as file:
        refuse_to_replace(options)
        quiet = file.path is None and sys.stdout.isatty()
        steps = sum(1 for _ in with_progress(counts.steps(), "Checking", None, quiet))
        shorter = steps < math.lcm(*(query.step for query in asked))
        plan = windows.plan(asked, spec.epsilon, horizon=steps if shorter else None)
        answers = plan.start(bins=names, window=window, sensitivity=spec.sensitivity)
        report = {
            "queries": len(asked),
            "filter": spec.filter,
            "steps": steps,
            "bins": len(names),
            "epsilon": plan.epsilon,
            "window": window,
            "sensitivity": answers.sensitivity,
            "guarantee": str(_promised(answers.guarantee)),
        }
        if options.dry_run:
            report |= _predicted(answers)
        else:
            pushed = with_progress(map(questions.counts, counts.steps()), "Publishing", steps, quiet)
            report |= _published(answers, pushed, spec.filter, file)
    return report, [_summary(report)]


def _refuse_what_is_for_steps(options: Options) -> None:
    if "mechanism" in options.stream:
        raise InputError(
            "--queries answers window queries and --mechanism releases every step; for both at once give the queries "
            "a share of epsilon with --queries-epsilon"
        )
    if options.events:
        raise InputError(
            "for events, add --queries-epsilon: the share of epsilon for answers; without it give a file of counts"
        )
    if "window_sensitivity" in options.stream:
        raise InputError(
            "--window-sensitivity is for releases of every step; give --queries-epsilon to answer queries besides, or "
            "leave it out"
        )
    if options.store is not None or options.account is not None or options.webhook:
        raise InputError(
            "--queries alone writes its answers to one file; leave --store, --account and --webhook out, or give "
            "--queries-epsilon to release every step besides"
        )
    if options.spec.filter not in FILTERS:
        raise InputError(
            f"--filter {options.spec.filter} is for releases of every step; with --queries choose truncate or none"
        )


def _promised(guarantee: Guarantee) -> Guarantee:
    """A guarantee about a file, whose length is not hidden."""
    return dataclasses.replace(guarantee, assumptions=(*guarantee.assumptions, LENGTH_IS_PUBLIC))


def _predicted(answers: Answers) -> dict[str, Any]:
    """What is known before anything is spent."""
    errors = standard_errors(answers)
    return {"dry_run": True, "standard_errors": errors, "worst_window_spent_at_most": answers.ledger.epsilon}


def _published(answers: Answers, steps: Iterable[Ints], filter_name: str, out: ReleaseFile) -> dict[str, Any]:
    """Push all steps and write what is due."""
    names = [str(query) for query in answers.plan.queries]
    written = 0
    for counts in _chunks(steps):
        due = answers.push_many(counts)
        values = np.maximum(np.rint(due.value), 0) if filter_name == "truncate" else due.value
        if len(due):
            out.write(AnswerRows([names[query] for query in due.query], due.begin, due.end, values, due.variance))
        written += len(due)
    out.commit()
    return {
        "answers": written,
        "worst_window_spent": answers.ledger.worst_window(),
        "out": None if out.path is None else str(out.path),
    }


def _summary(report: dict[str, Any]) -> str:
    """One sentence about what was done."""
    amount = f"{report['steps']:,} steps of {report['bins']:,} {'bin' if report['bins'] == 1 else 'bins'}"
    if "dry_run" in report:
        errors = [each["standard_error"] for each in report["standard_errors"] if each["standard_error"] is not None]
        return (
            f"Checked {amount}; nothing was published or charged. Answers to {report['queries']:,} queries would have "
            f"standard errors of {min(errors):,.3g} to {max(errors):,.3g}."
        )
    fullest = "step" if report["window"] == 1 else f"{report['window']} steps"
    return (
        f"Published {report['answers']:,} answers to {report['queries']:,} queries about {amount} to "
        f"{report['out'] or 'standard output'}; the fullest {fullest} spent "
        f"{report['worst_window_spent']:g} of epsilon {report['epsilon']:g}."
    )


def _chunks(steps: Iterable[Ints]) -> Iterator[Ints]:
    held: list[Ints] = []
    for counts in steps:
        held.append(counts)
        if len(held) * len(counts) >= CHUNK_CELLS:
            yield np.stack(held)
            held.clear()
    if held:
        yield np.stack(held)
