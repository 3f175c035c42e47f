"""Levels: every bin in one group of each, read from a file or given, in the order of the bins."""

import numpy as np
import pytest

from eventide.errors import InputError
from eventide.events.levels import Levels, bins_in

BINS = ("a", "b", "c", "d")


def written(tmp_path, text):
    path = tmp_path / "levels.csv"
    path.write_text(text)
    return path


def test_a_file_of_levels_in_the_order_of_the_bins(tmp_path):
    path = written(tmp_path, "bin,ward,clinic\nd,W2,C2\nb, W1 ,C1\n\na,W1,C1\nc,W2,C1\n")
    levels = Levels.of(path, BINS)
    assert levels.names == ("ward", "clinic", "total")
    assert levels.groups == {"ward": ("W1", "W2"), "clinic": ("C1", "C2"), "total": ("total",)}
    assert {level: labels.tolist() for level, labels in levels.labels.items()} == {
        "ward": [0, 0, 1, 1],
        "clinic": [0, 0, 0, 1],
        "total": [0, 0, 0, 0],
    }
    assert bins_in(path) == ("d", "b", "a", "c")
    assert levels == Levels.of(levels.described(), BINS)
    assert Levels.of(levels, ("d", "c", "b", "a")).labels["clinic"].tolist() == [0, 1, 1, 1]
    assert levels.members()["clinic", "C1"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("bin,ward\na,1\nb,1\nc,2\n", "bin 'd' is in no group of level 'ward'"),
        ("bin,ward\na,1\nb,1\nc,2\nd,2\ne,2\n", "there is no bin 'e'; choose one of a, b, c, d"),
        ("bin,ward\na,1\nb,1\nc,2\nd,2\na,2\n", "line 6 names the bin 'a' again"),
        ("bin,ward\na,1\nb,\nc,2\nd,2\n", "line 3 must name a bin and its group of each level"),
        ("bin,x,x\na,1,1\nb,1,1\nc,2,2\nd,2,2\n", "needs a first line such as"),
        ("bin,ward\n", "names no bin"),
        ("", "is empty"),
        ("bin,total\na,1\nb,1\nc,2\nd,2\n", "cannot be named 'total'"),
        ("bin,house\na,1\nb,1\nc,1\nd,1\n", "'house' are those of the total"),
        ("bin,ward\na,1\nb,2\nc,3\nd,4\n", "'ward' are those of the bins themselves"),
        ("bin,x,y\na,1,p\nb,1,p\nc,2,q\nd,2,q\n", "'x' are those of level 'y'"),
    ],
)
def test_what_is_no_file_of_levels_is_refused_in_a_sentence(tmp_path, text, sentence):
    with pytest.raises(InputError, match=sentence):
        Levels.of(written(tmp_path, text), BINS)


def test_levels_stand_from_small_groups_to_large_ones_in_whatever_order_they_came():
    assert Levels({"city": list("xxyy"), "ward": list("1223")}, BINS).names == ("ward", "city", "total")


def test_the_total_alone():
    assert Levels({}, BINS).names == ("total",)


def test_too_many_groups_are_refused():
    bins = [str(number) for number in range(4100)]
    with pytest.raises(InputError, match="at most 2,000"):
        Levels({"pair": np.arange(4100) // 2}, bins)
