"""Count files say the same thing whatever their form, and what is wrong with one is said without showing it."""

from __future__ import annotations

import datetime
import gzip
import os
import re
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.errors import InputError
from eventide.events.bins import parse_bins
from eventide.streams import tables
from eventide.streams.count_files import open_counts

NAMES = ("north", "south", "east, or near it")


@pytest.fixture
def write(tmp_path):
    """Write text or columns into a file and give its path."""

    def write_file(name, content):
        path = tmp_path / name
        if isinstance(content, dict):
            pq.write_table(pa.table(content), path)
        elif name.endswith(".gz"):
            path.write_bytes(gzip.compress(content.encode()))
        else:
            path.write_text(content, encoding="utf-8")
        return path

    return write_file


def matrix_of(path, bins=None):
    return np.stack(list(open_counts(path, bins).steps()))


def refusal_of(path, bins=None):
    with pytest.raises(InputError) as refused:
        list(open_counts(path, bins).steps())
    return str(refused.value)


matrices = st.integers(1, 30).flatmap(
    lambda rows: st.lists(
        st.lists(st.one_of(st.just(0), st.integers(0, 2**53)), min_size=3, max_size=3), min_size=rows, max_size=rows
    )
)


@given(matrix=matrices, block=st.integers(200, 2000))
def test_every_form_of_a_matrix_reads_as_that_matrix(matrix, block, tmp_path_factory):
    folder = tmp_path_factory.mktemp("forms")
    matrix = np.array(matrix)
    cells = [(t, NAMES[b], matrix[t, b]) for t, b in np.argwhere(matrix > 0)] or [(0, NAMES[0], 0)]
    wide = {"t": range(len(matrix)), **dict(zip(NAMES, matrix.T, strict=True))}
    long = dict(zip(("step", "bin", "value"), map(list, zip(*cells, strict=True)), strict=True))
    last = cells[-1][0] + 1  # a long file ends with its last cell
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "CSV_BLOCK", block)
        patch.setattr(tables, "PARQUET_CELLS", block // 100)
        for form, expected in ((wide, matrix), (long, matrix[:last])):
            table = pa.table({name: list(column) for name, column in form.items()})
            pq.write_table(table, folder / "file.parquet", row_group_size=7)
            lines = [",".join(f'"{name}"' for name in form)]
            lines += [",".join(f'"{cell}"' for cell in row) for row in zip(*form.values(), strict=True)]
            (folder / "file.csv").write_text("\n".join(lines))
            for ending in ("csv", "parquet"):
                np.testing.assert_array_equal(matrix_of(folder / f"file.{ending}", NAMES), expected)


def test_the_header_says_the_layout_and_names_the_bins(write):
    wide = open_counts(write("wide.csv", "step,b,a\n0,1,2\n"))
    assert (wide.layout, wide.bins) == ("wide", ("b", "a"))
    long = open_counts(write("long.csv", "t,bin,count\n0,a,2\n"), ["a", "b"])
    assert (long.layout, long.bins) == ("long", ("a", "b"))


@pytest.mark.parametrize("first", ["", "t,", "step,", "Step,", "time,", "start,"])
def test_a_first_column_of_steps_or_times_is_no_bin(write, first):
    counts = open_counts(
        write("wide.csv", f"{first}a,b\n" + "".join(f"{t}," * bool(first) + "5,6\n" for t in range(3)))
    )
    assert counts.bins == ("a", "b")
    np.testing.assert_array_equal(list(counts.steps()), [[5, 6]] * 3)


def test_times_are_not_read(write):
    assert matrix_of(write("wide.csv", "time,a\n2024-01-01T00:00,5\n2024-01-01T00:10,6\n")).tolist() == [[5], [6]]


def test_given_bins_set_the_order_of_wide_columns(write):
    assert matrix_of(write("wide.csv", "t,a,b\n0,1,2\n"), ["b", "a"]).tolist() == [[2, 1]]


def test_steps_may_be_read_again(write):
    counts = open_counts(write("wide.csv", "a\n1\n2\n"))
    assert [s.tolist() for s in counts.steps()] == [s.tolist() for s in counts.steps()] == [[1], [2]]


def test_absent_cells_and_steps_are_zero(write):
    long = write("long.csv.gz", "t,bin,count\n1,b,5\n1,a,3\n4, a ,2\n")
    assert matrix_of(long, ["a", "b"]).tolist() == [[0, 0], [3, 5], [0, 0], [0, 0], [2, 0]]


@pytest.mark.parametrize(
    ("cell", "number"),
    [("007", 7), ("1e3", 1000), ("3.0", 3), ("+5", 5), (" 4 ", 4), ("-0", 0), ('"6"', 6), ("9007199254740992", 2**53)],
)
def test_numbers_are_read_as_people_write_them(write, cell, number):
    assert matrix_of(write("wide.csv", f"a,b\n1,2\n{cell},3.0\n")).tolist() == [[1, 2], [number, 3]]


@pytest.mark.parametrize(
    ("cell", "fault"),
    [
        ("-7919", "is negative"),
        ("7919.5", "is not a whole number"),
        ("", "is empty or not a number"),
        ("NaN", "is empty or not a number"),
        ("null", "is empty or not a number"),
        ("many", "is empty or not a number"),
        ("0x1EEF", "is empty or not a number"),
        ("7_919", "is empty or not a number"),
        ("inf", "is too large"),
        ("9007199254740994", "is too large"),
        ("99999999999999999999", "is too large"),
    ],
)
@pytest.mark.parametrize("layout", ["wide", "long"])
def test_a_bad_cell_is_named_by_column_and_row_and_not_shown(write, layout, cell, fault):
    text = {"wide": f"t,a,b\n0,1,2\n1,3,{cell}\n", "long": f"t,bin,count\n0,a,1\n1,a,{cell}\n"}[layout]
    message = refusal_of(write("counts.csv", text), ["a", "b"])
    column = "b" if layout == "wide" else "count"
    assert f"counts.csv: column {column!r} in row 2 {fault};" in message
    assert not cell or cell not in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("column", "fault"),
    [
        ([7919, -7919], "negative"),
        ([7919, None], "empty"),
        ([7919.0, float("nan")], "empty"),
        ([7919.0, 7919.5], "not a whole number"),
        ([7919, 2**60], "too large"),
        (["7919", "many"], "not a number"),
        ([datetime.datetime(1979, 1, 9)] * 2, "not a number"),
        ([datetime.timedelta(1)] * 2, "not a number"),
        ([[7919]] * 2, "not a number"),
    ],
)
def test_parquet_cells_are_held_to_the_same_rule(write, column, fault):
    message = refusal_of(write("counts.parquet", {"a": [1, 2], "b": column}))
    assert "column 'b' in row" in message
    assert fault in message
    assert "79" not in message


def test_parquet_columns_of_many_types_are_read_alike(write):
    columns = {
        "a": pa.array([1, 2], pa.uint8()),
        "b": [3.0, 4.0],
        "c": ["5", "6.0"],
        " d ": pa.array([7, 8], pa.int32()),
    }
    counts = open_counts(write("counts.parquet", columns))
    assert counts.bins == ("a", "b", "c", "d")
    assert np.stack(list(counts.steps())).tolist() == [[1, 3, 5, 7], [2, 4, 6, 8]]


@pytest.mark.parametrize("steps", ["0,1,3", "0,2,1", "1,2,3", "0,0,1"])
def test_wide_steps_must_count_without_a_gap(write, steps):
    rows = "".join(f"{step},7919\n" for step in steps.split(","))
    message = refusal_of(write("wide.csv", "t,a\n" + rows))
    row = next(i for i, step in enumerate(steps.split(",")) if int(step) != i) + 1
    assert f"column 't' in row {row} does not {'begin with 0' if row == 1 else 'go on'}" in message


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ("0,a,79\n2,a,79\n1,a,79\n", "column 't' in row 3 goes back"),
        ("0,a,79\n0,b,79\n0,a,79\n", "row 3 repeats a bin"),
        (
            "0,a,79\n0,stranger,79\n",
            "column 'bin' in row 2 is not one of the 2 bins; add it to the list given with --bins",
        ),
        ("1700000000,a,79\n", "column 't' in row 1 is more than 1,000,000 steps ahead"),
    ],
)
@pytest.mark.parametrize("block", [12, 4096])
def test_a_long_file_out_of_order_is_refused(write, monkeypatch, rows, fault, block):
    monkeypatch.setattr(tables, "CSV_BLOCK", max(block, len(rows.split()[0]) + 12))
    message = refusal_of(write("long.csv", "t,bin,count\n" + rows), ["a", "b"])
    assert fault in message
    assert "79" not in message
    assert "stranger" not in message


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("wide.csv", "t,a\n0,79\n", "(missing: 'b')"),
        ("wide.csv", "t,a,b,c\n0,79,79,79\n", "the columns do not fit the list of bins (unknown: 'c')"),
        ("wide.csv", "t,a,a\n0,79,79\n", "column 'a' appears twice"),
        ("wide.csv", ",a,b\n0,79,79\n", "column 1 is empty"),
        ("wide.csv", "t\n0\n", "no column of counts"),
        ("wide.csv", "t,a,b\n0,79,79\n1,79\n", "row 2 has 2 columns where the header has 3"),
        ("wide.csv", "t,a,b\n0,79,79,79\n", "row 1 has 4 columns where the header has 3"),
        ("wide.csv", 't,a,b\n0,79,"79"\n\n1,79\n', "row 3 has 2 columns where the header has 3"),
        ("wide.csv", "a,b\n79,79\n\n79,79\n", "column 'a' in row 2 is empty"),
        ("wide.csv", "", "has no rows"),
        ("wide.csv", "t,a,b", "has no rows"),
        ("wide.csv", "t,a,b\n", "has no rows"),
        ("wide.parquet", {"a": pa.array([], pa.int64()), "b": pa.array([], pa.int64())}, "has no rows"),
        ("long.csv", "bin,count\na,79\n", "column t or step is missing"),
        ("long.csv", "t,bin\n0,a\n", "column count or value is missing"),
        ("long.parquet", {"t": [0], "bin": [["a"]], "count": [79]}, "holds no names"),
        ("counts.txt", "a,b\n79,79\n", "ends in none of .csv"),
    ],
)
def test_a_file_of_another_shape_is_refused(write, name, content, fault):
    message = refusal_of(write(name, content), ["a", "b"])
    assert message.startswith(name)
    assert fault in message
    assert "79" not in message


def test_a_long_file_needs_its_bins(write):
    assert "--bins FILE" in refusal_of(write("long.csv", "t,bin,count\n0,a,1\n"))


def test_a_damaged_file_is_refused(write, tmp_path):
    whole = write("whole.parquet", {"a": list(range(1000))}).read_bytes()
    zipped = write("whole.csv.gz", "a\n" + "\n".join(map(str, range(9999)))).read_bytes()
    for name, content in {
        "cut.parquet": whole[: len(whole) // 2],
        "none.parquet": b"",
        "cut.csv.gz": zipped[: len(zipped) // 2],
        "plain.csv.gz": b"a\n1\n",
        "latin.csv": "caf\u00e9\n1\n".encode("latin-1"),
        "latin_cell.csv": "a\n1\ncaf\u00e9\n".encode("latin-1"),
        "binary.csv": whole,
    }.items():
        path = tmp_path / name
        path.write_bytes(content)
        message = refusal_of(path)
        assert message.startswith(f"{name} cannot be read as a")
        assert message.endswith("write it again")


def test_a_file_that_is_not_there_is_refused(tmp_path):
    assert "is not a file; check the path" in refusal_of(tmp_path / "absent.csv")
    assert "is not a file; check the path" in refusal_of(tmp_path)


def test_no_cause_that_shows_the_row_is_chained_to_a_refusal(write):
    with pytest.raises(InputError) as refused:
        list(open_counts(write("wide.csv", "a,b\n7919\n")).steps())
    assert refused.value.__suppress_context__


def test_the_threads_that_read_a_csv_file_hold_nothing_of_python(write, monkeypatch):
    """They may outlive the interpreter, and letting go of a Python object would then abort the process."""
    given, open_csv = [], pa_csv.open_csv

    def opened(*options):
        given.append(options)
        return open_csv(*options)

    monkeypatch.setattr(tables.pa_csv, "open_csv", opened)
    assert "is negative" in refusal_of(write("wide.csv", "a,b\n1,-2\n"))
    ((source, _, parsing, _),) = given
    assert isinstance(source, str)
    assert parsing.invalid_row_handler is None


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc, to see which files are open")
@pytest.mark.parametrize("name", ["wide.csv", "wide.csv.gz", "wide.parquet"])
def test_a_file_that_is_not_read_to_its_end_is_closed(write, name):
    path = write(name, {"a": list(range(5000))} if name.endswith("parquet") else "a\n" + "1\n" * 5000)
    steps = open_counts(path).steps()
    next(steps)
    steps.close()
    deadline = time.monotonic() + 300  # a thread may be at it still
    while any(os.path.realpath(entry) == str(path) for entry in Path("/proc/self/fd").iterdir()):
        assert time.monotonic() < deadline, "the file is still open"
        time.sleep(0.01)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_memory_does_not_grow_with_the_file(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(tables, "CSV_BLOCK", 1 << 14)
    monkeypatch.setattr(tables, "PARQUET_CELLS", 1 << 13)
    path, rows, width = tmp_path / f"big.{ending}", 40_000, 10
    table = pa.table({f"c{j}": np.arange(rows) for j in range(width)})
    if ending == "csv":
        pa_csv.write_csv(table, path)
    else:
        pq.write_table(table, path, row_group_size=1000)
    del table
    before, peak, seen = pa.total_allocated_bytes(), 0, 0
    tracemalloc.start()
    try:
        for _ in open_counts(path).steps():
            seen += 1
            peak = max(peak, pa.total_allocated_bytes() - before)
        peak += tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert seen == rows
    assert peak < rows * width * 8 / 4


def test_bins_are_a_number_a_range_or_a_list_in_a_file(write):
    assert parse_bins("3") == ("0", "1", "2")
    assert parse_bins("1..24") == tuple(str(number) for number in range(1, 25))
    assert parse_bins("7..7") == ("7",)
    assert parse_bins(str(write("bins.txt", "north\nsouth, or near it\n"))) == ("north", "south, or near it")
    assert parse_bins(str(write("bins.csv", 'bin\nnorth\n"south, or near it"\n'))) == ("north", "south, or near it")


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("bins.txt", "a\nb\na\n", "'a' appears twice"),
        ("bins.txt", "a\n\nb\n", "name 2 is empty"),
        ("bins.txt", "", "holds no name"),
        ("bins.csv", "a,1\nb,2\n", "row 1 has 2 columns"),
    ],
)
def test_a_bad_list_of_bins_is_refused(write, name, content, fault):
    with pytest.raises(InputError, match=fault):
        parse_bins(str(write(name, content)))


@pytest.mark.parametrize("text", ["0", "-3", "absent.txt", ".", "1..", "..4", "1...4", "a..c"])
def test_bins_that_are_nothing_that_can_be_read_are_refused(text):
    with pytest.raises(InputError, match=f"^{re.escape(text)} (is no number of bins|holds no bin)"):
        parse_bins(text)


def test_a_list_of_bins_that_is_not_utf_8_is_named_as_such(tmp_path):
    (tmp_path / "bins.txt").write_bytes("Süd\n".encode("latin-1"))
    with pytest.raises(InputError, match=r"bins\.txt is not in UTF-8; save the file in UTF-8"):
        parse_bins(str(tmp_path / "bins.txt"))


@pytest.mark.parametrize(
    ("name", "content"), [("long.csv", "t,bin,count\n2026-03-27T00:00,a,1\n"), ("wide.csv", "when,a\n2026-03-27,1\n")]
)
def test_dates_of_counts_are_told_where_they_may_stand(write, name, content):
    message = refusal_of(write(name, content), ["a"] if name == "long.csv" else None)
    assert (
        "name their column time and put it first, in a long file number the steps 0, 1, 2, ... in column t" in message
    )


def test_a_range_that_goes_down_holds_no_bin():
    with pytest.raises(InputError, match=r"5\.\.3 holds no bin"):
        parse_bins("5..3")


@pytest.mark.parametrize("text", ["7919,7907\n7901,7883\n", "t,7919\n0,7907\n"])
def test_a_row_of_counts_is_not_taken_for_a_header(write, text):
    """The names of bins are published, so a file without a header would give its first step away."""
    message = refusal_of(write("bare.csv", text))
    assert "row of numbers instead of names" in message
    assert "79" not in message


def test_numbers_may_be_names_when_they_are_listed(write):
    assert open_counts(write("coded.csv", "101,102\n3,4\n"), ("101", "102")).bins == ("101", "102")


@pytest.mark.parametrize("separator", [";", "\t"])
def test_other_separators_are_named(write, separator):
    assert "separate columns by commas" in refusal_of(write("other.csv", f"a{separator}b\n1{separator}2\n"))
