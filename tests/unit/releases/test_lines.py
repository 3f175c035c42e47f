"""Release lines: the same bytes as plain JSON, whatever way their numbers are written."""

from __future__ import annotations

import json

import numpy as np
import pytest

from eventide.releases.lines import SMALL, ReleaseLine, plain, read_line, write_line

NUMBERS = {
    "small": [3, 0, 17, SMALL - 1],
    "not small": [3, SMALL],
    "negative": [-1, 5],
    "no zero": [0.0, -0.0],
    "fractions": [1.5, 2.0, 1e-300],
    "large": [2.0**53, 1.0],
    "alike": [66.66666666666667] * 5,
    "unknown": [np.inf, 2.0],
    "all unknown": [np.inf, np.inf],
    "none": [],
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_written_as_json_does(name):
    values = np.array(NUMBERS[name], dtype=np.float64)
    written = write_line(ReleaseLine(4, True, values, values))
    texts = {"values": plain(values), "scale": plain(values)}
    assert written == json.dumps({"step": 4, "fresh": True, **texts}).encode()
    assert read_line(written).scale.tolist() == NUMBERS[name]
    known = np.where(np.isfinite(values), values, np.nan)  # what is null is no value, and of scales no look yet
    assert np.array_equal(read_line(written).values, known, equal_nan=True)
