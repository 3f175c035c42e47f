"""Plans, and plans at work, as bytes that can be read back: a ZIP of JSON and arrays, never pickle.

A plan at work goes on exactly where it was saved, ledger included; while slots are open its bytes hold their true sums
(`holds_raw`).
"""

from __future__ import annotations

from dataclasses import asdict
from fractions import Fraction
from typing import Any

from eventide.errors import EventideError, StateError
from eventide.privacy.amounts import NANO
from eventide.privacy.archive import pack, unpack
from eventide.privacy.noise import named, recorded_name
from eventide.windows.answering.answers import Answers
from eventide.windows.plans import Plan
from eventide.windows.schemes.cover import Cover, Layers
from eventide.windows.schemes.nested import Level, Nested
from eventide.windows.schemes.scheme import Scheme, Slots
from eventide.windows.workload import Query, Workload

PLAN, ANSWERS, VERSION = "eventide plan", "eventide answers", 1


def save_plan(plan: Plan) -> bytes:
    """A plan as bytes."""
    return pack({"format": PLAN, "version": VERSION, "plan": _described(plan)})


def save_answers(answers: Answers) -> bytes:
    """A plan at work as bytes."""
    stream = {
        "name": "",
        "plan": _described(answers.plan),
        "bins": answers.bins,
        "since": answers.since,
        "refine": answers.refine,
        "noise": recorded_name(answers.source),
        "state": answers.snapshot(),
    }
    document = {
        "format": ANSWERS,
        "version": VERSION,
        "several": False,
        "window": answers.ledger.window,
        "replicas": answers.ledger.replicas,
        "sensitivity": answers.sensitivity,
        "ledger": answers.ledger.snapshot(),
        "streams": [stream],
    }
    return pack(document)


def load(data: bytes) -> Plan | Answers | dict[str, Answers]:
    """What `save` of a plan, or of a plan at work, put away.

    Earlier versions could save several plans at work under one ledger: they come back by name, each with its own.

    Parameters
    ----------
    data
        The bytes that `save` gave.
    """
    document = unpack(data)
    try:
        if document["format"] not in (PLAN, ANSWERS) or document["version"] != VERSION:
            kind = f"{document['format']!r}, version {document['version']}"
            raise StateError(f"these are bytes of {kind}; load them with what saved them")
        if document["format"] == PLAN:
            return _built(document["plan"])
        answers = {stream["name"]: _answers(document, stream) for stream in document["streams"]}
        return answers if document["several"] else answers[""]
    except EventideError:
        raise
    except (KeyError, ValueError, TypeError, AttributeError, IndexError) as problem:
        raise StateError(f"the saved bytes cannot be read ({type(problem).__name__}); they are damaged") from None


def _answers(document: dict[str, Any], stream: dict[str, Any]) -> Answers:
    """A plan at work as it was saved.

    The ledger of several plans holds the sum of their charges. Taken apart, each gets its own epsilon and counts every
    tick so far with the most its plan may charge for one; the epsilons of all add up to what they were together.
    """
    settings = {name: document[name] for name in ("window", "replicas", "sensitivity")}
    plan, noise = _built(stream["plan"]), named(stream["noise"])
    answers = Answers(plan, stream["bins"], noise=noise, refine=stream["refine"], **settings)
    if document["several"]:
        answers.pass_over(document["ledger"]["step"], plan.budget // answers.ledger.window)
    else:
        answers.ledger.restore(document["ledger"])
    answers.begin(plan, stream["since"])
    answers.restore(stream["state"])
    return answers


def _described(plan: Plan) -> dict[str, Any]:
    workload, scheme = plan.workload, plan.scheme
    return {
        "queries": [asdict(query) for query in workload.queries],
        "horizon": workload.horizon,
        "start": workload.start,
        "epsilon": plan.budget,
        "planner": plan.planner,
        "scheme": _scheme_described(scheme),
    }


def _built(described: dict[str, Any]) -> Plan:
    queries = [Query(**query) for query in described["queries"]]
    workload = Workload.of(queries, described["horizon"], described["start"])
    return Plan(
        workload, Fraction(described["epsilon"], NANO), described["planner"], _scheme_built(described["scheme"])
    )


def _scheme_described(scheme: Scheme) -> dict[str, Any]:
    if isinstance(scheme, Nested):
        levels = [level._asdict() for level in scheme.levels]
        return {"nodes": scheme.nodes, "levels": levels, "budget": scheme.budget, "periodic": scheme.periodic}
    described = {"slots": vars(scheme.slots), "length": scheme.length, "periodic": scheme.periodic}
    if isinstance(scheme, Layers):
        described |= {"steps": scheme.steps, "serves": list(scheme.serves.items())}
    return described


def _scheme_built(described: dict[str, Any]) -> Scheme:
    if "levels" in described:
        levels = [Level(**level) for level in described["levels"]]
        return Nested(described["nodes"], levels, described["budget"], described["periodic"])
    slots = Slots(**described["slots"])
    if "steps" in described:
        serves = dict(described["serves"])
        return Layers(slots, described["length"], described["periodic"], described["steps"], serves)
    return Cover(slots, described["length"], described["periodic"])
