"""Plans, and plans at work, as bytes that can be read back: a ZIP of JSON and arrays, never pickle.

A plan at work goes on exactly where it was saved, ledger included; while slots are open its bytes hold their true sums
(`holds_raw`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from fractions import Fraction
from typing import Any

from eventide.errors import EventideError, StateError
from eventide.privacy.amounts import NANO
from eventide.privacy.archive import pack, unpack
from eventide.privacy.noise import named, recorded_name
from eventide.windows.answering.answers import Answers, ManyAnswers, Run
from eventide.windows.answering.stream import Stream
from eventide.windows.plans import Plan
from eventide.windows.schemes.base import Scheme
from eventide.windows.schemes.cover import Cover, Layers
from eventide.windows.schemes.nested import Level, Nested
from eventide.windows.schemes.slots import Slots
from eventide.windows.workload import Query, Workload

PLAN, ANSWERS, VERSION = "eventide plan", "eventide answers", 1


def save_plan(plan: Plan) -> bytes:
    """A plan as bytes."""
    return pack({"format": PLAN, "version": VERSION, "plan": _described(plan)})


def save_run(run: Run) -> bytes:
    """Plans at work as bytes."""
    streams = [
        {
            "name": name,
            "plan": _described(stream.plan),
            "bins": stream.bins,
            "since": stream.since,
            "refine": stream.refine,
            "noise": recorded_name(stream.source),
            "state": stream.snapshot(),
        }
        for name, stream in run._streams.items()
    ]
    document = {
        "format": ANSWERS,
        "version": VERSION,
        "several": isinstance(run, ManyAnswers),
        "window": run.ledger.window,
        "replicas": run.ledger.replicas,
        "sensitivity": run.sensitivity,
        "ledger": run.ledger.snapshot(),
        "streams": streams,
    }
    return pack(document)


def load(data: bytes) -> Plan | Answers | ManyAnswers:
    """What `save` of a plan, or of a plan at work, put away."""
    document = unpack(data)
    readers: dict[str, Callable[[dict[str, Any]], Plan | Answers | ManyAnswers]] = {PLAN: _plan, ANSWERS: _run}
    try:
        if document["format"] not in readers or document["version"] != VERSION:
            raise StateError(f"these are bytes of {document['format']!r}, version {document['version']}; not readable")
        return readers[document["format"]](document)
    except EventideError:
        raise
    except (KeyError, ValueError, TypeError, AttributeError, IndexError) as problem:
        raise StateError(f"the saved bytes cannot be read ({type(problem).__name__}); they are damaged") from None


def _plan(document: dict[str, Any]) -> Plan:
    return _built(document["plan"])


def _run(document: dict[str, Any]) -> Answers | ManyAnswers:
    plans = {stream["name"]: _built(stream["plan"]) for stream in document["streams"]}
    bins = {stream["name"]: stream["bins"] for stream in document["streams"]}
    settings = {name: document[name] for name in ("window", "replicas", "sensitivity")}
    run = ManyAnswers(plans, bins, **settings) if document["several"] else Answers(plans[""], bins[""], **settings)
    run.ledger.restore(document["ledger"])
    for saved in document["streams"]:
        stream = Stream(
            plans[saved["name"]],
            run.ledger,
            named(saved["noise"]),
            saved["bins"],
            run.sensitivity,
            saved["refine"],
            saved["since"],
        )
        stream.restore(saved["state"])
        run._streams[saved["name"]] = stream
    return run


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
