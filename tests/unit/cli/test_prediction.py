"""What a dry run says of the error to expect."""

from __future__ import annotations

import json
import math

from eventide.cli.publish.prediction import document, sentences
from eventide.mechanisms.expected_error import ExpectedError, Prediction

COUNTED = ExpectedError("events", (50.0, 500.0, 5_000.0), (5.0, 25.0, 30.0), (10.0, 50.0, 400.0))


def test_counts_have_percent_and_bars():
    told, known, picture = sentences(Prediction([COUNTED], 200, 24))
    assert told == (
        "With this setting the expected error of a count is about 5 to 400; at counts of 50, 500 and 5,000 that is "
        "10 to 20 %, 5 to 10 %, 0.6 to 8 %."
    )
    assert known.startswith("Simulated: a copy of the mechanism published made-up streams, not your data.")
    assert picture.splitlines()[1:] == [
        "     50:   5 to 10  10 to 20 %  ██▍░░",
        "    500:  25 to 50   5 to 10 %  █▎",
        "  5,000: 30 to 400  0.6 to 8 %  ▏░",
    ]


def test_what_is_0_on_average_has_no_percent():
    around_zero = ExpectedError("sum:balance", (0.0, 0.0, 0.0), (5.0, 5.0, 5.0), (6.0, 6.0, 6.0))
    told, _, picture = sentences(Prediction([around_zero], 200, 24))
    assert told == "With this setting the expected error of sum:balance is about 5 to 6."
    assert picture.splitlines()[1] == "     50: 5 to 6  -"


def test_what_nothing_is_known_of_is_told_so_and_is_valid_json():
    lost = ExpectedError("mean:fare", (50.0, 50.0, 50.0), (math.inf, 9.0, 1.0), (math.inf, 9.0, 1.0))
    told, _, picture = sentences(Prediction([lost], 200, 24))
    assert "not known" in told
    assert "50: not known" in picture
    assert json.loads(json.dumps(document(Prediction([lost], 200, 24)), allow_nan=False))["expected_error"]["of"][
        0
    ] == {
        "what": "mean:fare",
        "usual": [50, 50, 50],
        "steady": [None, 9, 1],
        "changing": [None, 9, 1],
    }
