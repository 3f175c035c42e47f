"""Combinations in which every two values of two options are met together, if they go together at all."""

from __future__ import annotations

import itertools
import random

TRIES = 100  # to put something around two values


def pairwise(options, fits):
    """Dicts with one value of each option, always the same; `fits` says of a dict whether its values go together.

    >>> cases = pairwise({"a": "xyz", "b": "xyz", "c": "xyz"}, lambda case: True)
    >>> len(cases) < 27, len({(case["a"], case["c"]) for case in cases})
    (True, 9)
    """
    chance, met, cases = random.Random(1), set(), []
    for one, other in itertools.combinations(options, 2):
        for pair in itertools.product([(one, value) for value in options[one]], [(other, v) for v in options[other]]):
            if pair in met:
                continue
            tried = [
                {name: chance.choice(values) for name, values in options.items()} | dict(pair) for _ in range(TRIES)
            ]
            if fitting := [case for case in tried if fits(case)]:
                cases.append(max(fitting, key=lambda case: len(_pairs(case) - met)))
                met |= _pairs(cases[-1])
    return cases


def _pairs(case):
    return set(itertools.combinations(case.items(), 2))
