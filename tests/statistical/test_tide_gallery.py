"""Streams made to mislead Tide: it is never more than twice as far off as the better of Uniform and Sample."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import eventide as ev

HOME = Path(__file__).parents[2] / "benchmarks" / "tide_streams.py"
SPEC = importlib.util.spec_from_file_location("tide_streams", HOME)
STREAMS = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(STREAMS)
GALLERY = STREAMS.gallery()


def mean_error(name, stream, epsilon, window):
    replicas = 100 if stream.shape[1] == 1 else 1  # a wide stream is many repetitions by itself
    common = {"epsilon": epsilon, "window": window, "bins": stream.shape[1], "replicas": replicas, "seed": 41}
    mechanism = ev.mechanism(name, **common)
    return np.mean([np.abs(mechanism.release(counts).values - counts).mean() for counts in stream])


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "window"), [(0.1, 120), (1.0, 40), (1.0, 200)])
@pytest.mark.parametrize("name", GALLERY)
def test_it_is_never_more_than_twice_as_far_off(name, epsilon, window):
    tide, uniform, sample = (
        mean_error(mechanism, GALLERY[name], epsilon, window) for mechanism in ("tide", "uniform", "sample")
    )
    assert tide <= 2 * min(uniform, sample)
