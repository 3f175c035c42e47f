"""Releases are written as they are, whole numbers as such, and a file appears complete or not at all."""

from __future__ import annotations

import errno
import gc
import json
import os

import numpy as np
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from eventide.errors import InputError, StoreError
from eventide.releases import formats as release_formats
from eventide.releases.files import open_releases
from eventide.releases.formats import FORMATS, formats
from eventide.releases.lines import ReleaseLine
from eventide.streams.count_files import open_counts

BINS = ("north", 'the "old", south')
VALUES = np.array([[3, 0], [123_456_789_012, 1], [7, 10**15]], dtype=float)


def released(step, values, scale=2.0, **known):
    return ReleaseLine(step, np.bool_(step == 0), values, np.full(len(values), scale), **known)


def write(path, values=VALUES, layout=None, bins=BINS):
    with open_releases(str(path), bins, layout) as file:
        for step, row in enumerate(values):
            file.write(released(step, row))
        file.commit()


@pytest.mark.parametrize("layout", ["wide", "long"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("buffered", [1, 4, 1 << 20])
def test_a_table_reads_back_as_what_was_released(tmp_path, monkeypatch, layout, ending, buffered):
    monkeypatch.setattr(release_formats, "BUFFERED_CELLS", buffered)
    path = tmp_path / f"private.{ending}"
    write(path, layout=layout)
    counts = open_counts(path, BINS)
    assert counts.layout == layout
    np.testing.assert_array_equal(list(counts.steps()), VALUES)


def test_json_lines_hold_one_object_a_step(tmp_path):
    path = tmp_path / "private.jsonl"
    with open_releases(str(path), BINS) as file:
        file.write(released(0, np.array([-2.0, 1.5]), scale=np.inf))
        file.write(released(1, np.array([3.0, -0.0]), low=np.array([2.0, 0.0]), high=np.array([4.5, 1.0])))
        file.commit()
    first, second = map(json.loads, path.read_text().splitlines())
    assert first == {"step": 0, "fresh": True, "values": [-2, 1.5], "scale": [None, None]}
    assert second == {
        "step": 1, "fresh": False, "values": [3, 0], "scale": [2, 2], "low": [2, 0], "high": [4.5, 1]
    }  # fmt: skip
    assert ".0" not in path.read_text()


def test_csv_tables_have_the_columns_of_their_layout(tmp_path):
    write(tmp_path / "wide.csv")
    assert (tmp_path / "wide.csv").read_text() == (
        'step,north,"the ""old"", south"\n0,3,0\n1,123456789012,1\n2,7,1000000000000000\n'
    )
    write(tmp_path / "long.csv", layout="long")
    lines = (tmp_path / "long.csv").read_text().splitlines()
    header = "step,bin,value,low,high,scale,fresh"
    assert lines[:3] == [header, '0,"north",3,,,2,true', '0,"the ""old"", south",0,,,2,true']
    assert lines[-1] == '2,"the ""old"", south",1000000000000000,,,2,false'
    assert len(lines) == 1 + VALUES.size


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_tables_tell_intervals(tmp_path, ending):
    known = {"low": np.array([2.0, 0.5]), "high": np.array([4.0, 8.0])}
    for layout in ("wide", "long"):
        path = tmp_path / f"{layout}.{ending}"
        with open_releases(str(path), ("north", "south"), layout, None, formats(starts=True, intervals=True)) as file:
            file.write(released(0, np.array([3.0, 1.0]), start="now", **known))
            file.write(released(1, np.array([3.0, 1.0]), start="then"))
            file.commit()
    read = pq.read_table if ending == "parquet" else pa_csv.read_csv
    wide, long = (read(tmp_path / f"{layout}.{ending}") for layout in ("wide", "long"))
    names = ["step", "start", "north", "north_low", "north_high", "south", "south_low", "south_high"]
    assert wide.column_names == names
    assert [list(row.values()) for row in wide.to_pylist()] == [
        [0, "now", 3, 2, 4, 1, 0.5, 8],
        [1, "then", 3, None, None, 1, None, None],
    ]
    assert long.column_names == ["step", "start", "bin", "value", "low", "high", "scale", "fresh"]
    assert [list(row.values()) for row in long.to_pylist()] == [
        [0, "now", "north", 3, 2, 4, 2, True],
        [0, "now", "south", 1, 0.5, 8, 2, True],
        [1, "then", "north", 3, None, None, 2, False],
        [1, "then", "south", 1, None, None, 2, False],
    ]


def test_a_bin_named_like_an_end_of_an_interval_needs_the_long_layout(tmp_path):
    kinds = formats(starts=False, intervals=True)
    bins = ("north", "north_low")
    with (
        pytest.raises(InputError, match="column north_low of its own, so no bin may be named so; choose --layout long"),
        open_releases(str(tmp_path / "wide.csv"), bins, None, None, kinds),
    ):
        pass
    with open_releases(str(tmp_path / "plain.csv"), bins) as file:
        file.commit()
    assert (tmp_path / "plain.csv").read_text() == "step,north,north_low\n"


def test_fractions_and_negative_numbers_survive(tmp_path):
    values = np.array([[-3, 0.25], [1 / 3, 1e-9]])
    write(tmp_path / "wide.parquet", values)
    table = pq.read_table(tmp_path / "wide.parquet")
    assert table.column_names == ["step", *BINS]
    np.testing.assert_array_equal(np.column_stack([table[name].to_numpy() for name in BINS]), values)
    write(tmp_path / "long.csv", values, "long")
    cells = [float(line.split(",")[-5]) for line in (tmp_path / "long.csv").read_text().splitlines()[1:]]
    np.testing.assert_array_equal(cells, values.ravel())


def test_the_scale_before_the_first_look_is_null(tmp_path):
    with open_releases(str(tmp_path / "long.parquet"), ["a"], "long") as file:
        file.write(released(0, np.zeros(1), scale=np.inf))
        file.commit()
    assert pq.read_table(tmp_path / "long.parquet")["scale"].to_pylist() == [None]


@pytest.mark.parametrize(("bins", "layout"), [(1000, "wide"), (1001, "long")])
def test_tables_of_many_bins_are_long(tmp_path, bins, layout):
    names = [str(number) for number in range(bins)]
    write(tmp_path / "private.csv", np.ones((2, bins)), bins=names)
    assert open_counts(tmp_path / "private.csv", names).layout == layout


@pytest.mark.parametrize("out", [None, "-"])
def test_standard_output_gets_json_lines(capfd, out):
    with open_releases(out, BINS) as file:
        file.write(released(0, VALUES[0]))
        file.commit()
    assert json.loads(capfd.readouterr().out)["values"] == [3, 0]


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("failure", [KeyboardInterrupt, InputError("a bad cell"), None])
def test_without_commit_nothing_stays_and_what_was_there_is_untouched(tmp_path, ending, failure):
    (tmp_path / f"old{ending}").write_text("as it was")
    for name in ("old", "new"):
        try:
            with open_releases(str(tmp_path / f"{name}{ending}"), BINS) as file:
                file.write(released(0, VALUES[0]))
                assert len(list(tmp_path.iterdir())) == 2
                if failure is not None:
                    raise failure
        except (KeyboardInterrupt, InputError):
            assert failure is not None
        del file
        gc.collect(1)  # a writer that is forgotten must not complain or write
    assert [path.name for path in tmp_path.iterdir()] == [f"old{ending}"]
    assert (tmp_path / f"old{ending}").read_text() == "as it was"


def test_commit_replaces_what_was_there(tmp_path):
    (tmp_path / "private.csv").write_text("as it was")
    write(tmp_path / "private.csv")
    assert open_counts(tmp_path / "private.csv", BINS).bins == BINS
    assert len(list(tmp_path.iterdir())) == 1


def refusal_of(out, layout=None, bins=BINS, source=None):
    with pytest.raises(InputError) as refused, open_releases(str(out), bins, layout, source):
        pytest.fail("it must be refused before any work is done")
    return str(refused.value)


def test_what_cannot_be_written_is_refused_before_any_work(tmp_path):
    source = tmp_path / "counts.csv"
    source.write_text("a\n1\n")
    (tmp_path / "same.csv").symlink_to(source)
    (tmp_path / "folder.csv").mkdir()
    assert "No such file" in refusal_of(tmp_path / "absent" / "private.csv")
    assert "Not a directory" in refusal_of(source / "private.csv")
    assert "is a folder" in refusal_of(tmp_path / "folder.csv")
    assert "ends in none of .jsonl, .csv, .parquet" in refusal_of(tmp_path / "private.xlsx")
    assert "ends in none of .jsonl, .csv, .parquet" in refusal_of(".")
    assert "is the file that is read" in refusal_of(source, source=source)
    assert "is the file that is read" in refusal_of(tmp_path / "same.csv", source=source)
    assert "no bin may be named so" in refusal_of(tmp_path / "private.csv", bins=["step", "a"])
    assert "leave it out" in refusal_of(tmp_path / "private.jsonl", "wide")
    assert "leave it out" in refusal_of("-", "long")
    assert {path.name for path in tmp_path.iterdir()} == {"counts.csv", "same.csv", "folder.csv"}
    assert source.read_text() == "a\n1\n"


@pytest.mark.parametrize("ending", FORMATS)
def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path, monkeypatch, ending):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match=f"private{ending} cannot be made durable: No space left on device; look at"):
        write(tmp_path / f"private{ending}")
    assert list(tmp_path.iterdir()) == []
