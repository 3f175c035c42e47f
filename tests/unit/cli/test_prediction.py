"""What a dry run says of the error to expect."""

from __future__ import annotations

import json
import math

from eventide.live.publisher.prediction import document, sentences
from eventide.mechanisms.expected_error import ExpectedError, Prediction

COUNTED = ExpectedError("events", (5.0, 50.0, 500.0, 5_000.0), (4.0, 5.0, 25.0, 30.0), (4.0, 10.0, 50.0, 400.0))
FARES = ExpectedError("mean:fare", None, (40.0, 8.0, 0.9, 0.09), (45.0, 9.0, 0.9, 0.09))


def test_counts_have_percent_and_bars():
    told, known, picture = sentences(Prediction([COUNTED], 200, 24))
    assert told == (
        "With this setting the expected error of a count is about 4 to 400; at counts of 5, 50, 500 and 5,000 that is "
        "80 %, 10 to 20 %, 5 to 10 %, 0.6 to 8 %."
    )
    assert known.startswith("Simulated: a copy of the mechanism published made-up streams, not your data.")
    assert picture.splitlines() == [
        "  events in a bin and step: error of events, and in percent of it",
        "      5:         4        80 %  ███████████████████▎",
        "     50:   5 to 10  10 to 20 %  ██▍░░",
        "    500:  25 to 50   5 to 10 %  █▎",
        "  5,000: 30 to 400  0.6 to 8 %  ▏░",
    ]


def test_what_only_the_data_know_the_size_of_has_no_percent():
    told, _, picture = sentences(Prediction([FARES], 200, 24))
    assert told == (
        "With this setting the expected error of mean:fare is about 0.09 to 45, in the unit of its column, with 5 to "
        "5,000 events in a bin and step."
    )
    assert picture.splitlines() == [
        "  events in a bin and step: error of mean:fare, in the unit of its column",
        "      5: 40 to 45",
        "     50:   8 to 9",
        "    500:      0.9",
        "  5,000:     0.09",
    ]


def test_counts_of_slots_are_told_as_such():
    picture = sentences(Prediction([COUNTED._replace(what="people/1d")], 0, 24))[2]
    assert picture.startswith("  people in a bin and slot: error of people/1d, and in percent of it")


def test_what_a_limit_leaves_out_is_said_to_be_missing():
    told = sentences(Prediction([COUNTED], 0, 24), limited=True)[2]
    assert told.startswith("Events that the limit per person (--max-per-step, --cap) leaves out are not included; ")


def test_what_nothing_is_known_of_is_told_so_and_is_valid_json():
    lost = ExpectedError("mean:fare", None, (math.inf, 9.0, 1.0, 0.1), (math.inf, 9.0, 1.0, 0.1))
    told, _, picture = sentences(Prediction([lost], 200, 24))
    assert told == "With this setting the expected error of mean:fare is not known."
    assert "5: not known" in picture
    assert json.loads(json.dumps(document(Prediction([lost], 200, 24)), allow_nan=False))["expected_error"]["of"][
        0
    ] == {
        "what": "mean:fare",
        "usual": None,
        "steady": [None, 9, 1, 0.1],
        "changing": [None, 9, 1, 0.1],
    }
