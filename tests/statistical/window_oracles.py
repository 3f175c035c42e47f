"""What the answers of a plan at work are compared with, dense and obvious."""

import numpy as np

from eventide.privacy.amounts import NANO
from eventide.windows.schemes.nested import Level, Nested


def truth(counts, due):
    """The true sums of the windows of answers."""
    sums = np.concatenate([np.zeros((1, *counts.shape[1:])), np.cumsum(counts, axis=0)])
    return sums[due.end] - sums[due.begin]


def rows(due):
    """Everything about answers, as plain tuples."""
    return [(str(query), begin, end, np.array(value).tolist(), *rest) for query, begin, end, value, *rest in due]


def released_slots(plan, counts, first=0, last=None, parts=1, sensitivity=1):
    """Begin, end, value and variance of the slots of an epoch [first, last), cut at its ends, with noise of one scale.

    Without `last` only slots that end with the counts or before were released.
    """
    slots, length, found = plan.scheme.divided(parts).slots, plan.scheme.length, []
    sums = np.append(0, np.cumsum(counts))
    end_of_run = len(counts) if last is None else last
    cycles = -(-(end_of_run - plan.workload.start) // length) if plan.scheme.periodic else 1
    for shift in plan.workload.start + np.arange(cycles) * length:
        for begin, end, budget in zip(slots.begin + shift, slots.end + shift, slots.budget, strict=True):
            begin, end = max(begin, first), end if last is None else min(end, last)
            if begin < end <= end_of_run and budget > 0:
                scale = sensitivity * NANO / budget
                q = np.exp(-1 / scale)
                found.append((begin, end, sums[end] - sums[begin] + scale, 2 * q / (1 - q) ** 2))
    return np.array(found)


def best_linear(slots, begin, end):
    """Value and variance of the best linear unbiased answer from these slots, by solving for all atoms at once."""
    nodes = np.unique(np.concatenate([slots[:, :2].ravel(), [begin, end]]))
    over = ((slots[:, :1] <= nodes[:-1]) & (nodes[1:] <= slots[:, 1:2])).astype(float)
    weighted = over / slots[:, 3:4]
    inside = ((begin <= nodes[:-1]) & (nodes[1:] <= end)).astype(float)
    precision = np.linalg.pinv(over.T @ weighted, hermitian=True)
    return inside @ precision @ weighted.T @ slots[:, 2], inside @ precision @ inside


def random_plan(random, periodic=False):
    """Up to four levels over up to 14 atoms of any length, some slots without budget, some twins of the one below."""
    nodes = np.concatenate([[0], np.cumsum(random.integers(1, 9, random.integers(1, 15)))])
    bounds, levels = np.arange(len(nodes)), [Level(np.arange(len(nodes)), np.ones(len(nodes) - 1))]
    for _ in range(random.integers(0, 4)):
        inside = bounds[1:-1]
        bounds = np.concatenate([[0], inside[random.random(len(inside)) < 0.5], [len(nodes) - 1]])
        fraction = np.where(random.random(len(bounds) - 1) < 0.2, 0.0, random.uniform(0.05, 0.9, len(bounds) - 1))
        levels.append(Level(bounds, fraction))
    return Nested(nodes, levels, NANO, periodic)
