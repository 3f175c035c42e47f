"""The answers to window queries that a store holds, also where epochs asked different ones or about other bins.

They stand in the releases of the steps at whose ends they were due.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from eventide.live.stores.base import Setting, Store

Answer = dict[str, Any]


def names_of(setting: Setting) -> tuple[str, ...]:
    """What the values of an answer are about under a setting; nothing where no query was asked."""
    if setting.queries is None:
        return ()
    return setting.bins if setting.queries["of"] == "bins" else ("total",)


def answered_names(store: Store) -> tuple[str, ...]:
    """What any answer of a store is about, in the order of the last epoch first."""
    return tuple(dict.fromkeys(name for epoch in reversed(store.epochs()) for name in names_of(epoch.setting)))


def answers_in(line: bytes) -> list[Answer]:
    """The answers that a release holds; one without any is not even parsed."""
    return json.loads(line)["answers"] if b'"answers": ' in line else []


def stored_answers(store: Store, names: tuple[str, ...]) -> Iterator[tuple[int, list[Answer]]]:
    """All answers, with the step at whose end they were due; what an answer is not about has the value NaN."""
    next_step, epochs = store.next_step(), store.epochs()
    ends = [*(epoch.first_step for epoch in epochs), next_step][1:]
    for epoch, end in zip(epochs, ends, strict=True):
        own = names_of(epoch.setting)
        for step, line in store.releases(epoch.first_step, end - 1) if own else ():
            if answers := answers_in(line):
                yield step, answers if own == names else [_spread(answer, own, names) for answer in answers]


def _spread(answer: Answer, own: tuple[str, ...], names: tuple[str, ...]) -> Answer:
    values = dict(zip(own, answer["values"], strict=True))
    return answer | {"values": [values.get(name, float("nan")) for name in names]}
