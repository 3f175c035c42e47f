"""What makes a study comparable: the requirements of the w-event benchmark, checked on a study before it runs.

A study that misses one still runs; it is said which. The codes are those of the benchmark's report (Schaeler, Huetter,
Schaeler: Benchmarking the utility of w-event differential privacy mechanisms, 2022).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from eventide.bench.study.custom_mechanisms import is_custom
from eventide.bench.study.study import StudiedStream, Study

BASELINES = ("uniform", "sample")
HISTOGRAM_BASELINES = ("rg-baseline", "rg-window-baseline")  # of streams with a span
PLAN_BASELINES = ("base",)  # of streams with a workload
FEWEST_REPETITIONS = 20  # with fewer, the 0.95 quantile is little but the largest value


class Requirement(NamedTuple):
    """A requirement by its code, whether the study meets it, and a sentence that says why or why not."""

    code: str
    met: bool
    sentence: str


def check_requirements(study: Study) -> list[Requirement]:
    """Every requirement of the benchmark, met or not.

    Parameters
    ----------
    study
        What is checked.
    """
    found = []
    for code, fault_in, sentence in CHECKS:
        fault = fault_in(study)
        found.append(Requirement(code, fault is None, fault or sentence))
    return found


def _weaker_promise(study: Study) -> str | None:
    weak = [
        mechanism.label
        for mechanism in study.mechanisms
        if mechanism.parameters.get("as_published") or mechanism.parameters.get("accounting") == "fixed-bin"
    ]
    return f"not everybody is protected, or the proof is disputed, by {', '.join(weak)}" if weak else None


def _missing_baseline(study: Study) -> str | None:
    names: dict[tuple[str, tuple[str, ...]], set[str]] = {}
    for cell in study.cells:
        names.setdefault((cell.setting.experiment, _baselines(cell.stream)), set()).add(cell.mechanism.name)
    for (experiment, baselines), present in names.items():
        if missing := [name for name in baselines if name not in present]:
            kind = "baselines" if missing[1:] else "baseline"
            return f"the experiment {experiment!r} lacks the {kind} {' and '.join(missing)}"
    return None


def _baselines(stream: StudiedStream) -> tuple[str, ...]:
    """The plain ways to publish what is asked of a stream."""
    if stream.workload is not None:
        return PLAN_BASELINES
    return BASELINES if stream.span is None else HISTOGRAM_BASELINES


def _foreign_code(study: Study) -> str | None:
    names = [mechanism.name for mechanism in study.mechanisms if is_custom(mechanism.name)]
    return f"publish the code of {', '.join(dict.fromkeys(names))} with the results" if names else None


def _chosen_parameters(study: Study) -> str | None:
    labels: dict[str, list[str]] = {}
    for mechanism in study.mechanisms:
        labels.setdefault(mechanism.name, []).append(mechanism.label)
    for name, several in labels.items():
        if len(several) > 1:
            return (
                f"{name} runs with {len(several)} sets of parameters; "
                "to report the best of them would be to take a parameter from true data"
            )
    return None


def _unlike_knowledge(study: Study) -> str | None:
    values: dict[str, dict[str, set[str]]] = {}
    for mechanism in study.mechanisms:
        for parameter, value in mechanism.parameters.items():
            values.setdefault(parameter, {}).setdefault(mechanism.name, set()).add(repr(value))
    unlike = [key for key, by_name in values.items() if len({frozenset(each) for each in by_name.values()}) > 1]
    return f"mechanisms get different values of {', '.join(unlike)}" if unlike else None


def _hidden_stream(study: Study) -> str | None:
    hidden = [stream.label for stream in study.streams if not stream.public]
    return f"others cannot have the stream {', '.join(hidden)}" if hidden else None


def _constant_setting(study: Study, name: str) -> str | None:
    varied: dict[str, set[float]] = {}
    for setting in study.settings:
        varied.setdefault(setting.experiment, set()).add(getattr(setting, name))
    return None if max(map(len, varied.values())) > 1 else f"no experiment varies {name}"


def _unstated_bound(study: Study) -> str | None:
    if "mre" in study.metrics and not study.states_sanity_bound:
        return f"the study does not state the sanity bound of mre; {study.options.sanity_bound:g} is used"
    return None


def _few_repetitions(study: Study) -> str | None:
    if study.repetitions < FEWEST_REPETITIONS:
        return f"{study.repetitions} repetitions are too few for a 0.95 quantile; {FEWEST_REPETITIONS} would do"
    return None


CHECKS: list[tuple[str, Callable[[Study], str | None], str]] = [
    ("M-R1", _weaker_promise, "every mechanism promises w-event privacy to everybody"),
    ("M-R2", _missing_baseline, "the baselines take part"),
    ("M-R3", _foreign_code, "the code of every mechanism is public"),
    (
        "M-R4",
        _chosen_parameters,
        "no parameter is taken from true data: they stand in the study, and counts are never read without noise (of a "
        "class of your own the contract cannot tell that for sure: run eventide audit)",
    ),
    ("M-R5", _unlike_knowledge, "parameters that mechanisms share have one value"),
    ("S-R2", _hidden_stream, "every stream is public, and its digest is kept with the results"),
    ("P-R1", lambda study: _constant_setting(study, "epsilon"), "epsilon is varied"),
    ("P-R2", lambda study: _constant_setting(study, "window"), "the window is varied"),
    ("E-1", _unstated_bound, "the sanity bound of relative errors is stated"),
    ("E-2", _few_repetitions, "there are enough repetitions for mean and 0.95 quantile"),
]
