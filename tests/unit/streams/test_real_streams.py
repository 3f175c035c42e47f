"""Named real streams: read from a data folder, checked against its index, missing ones explained."""

import gzip
import json

import numpy as np
import pytest

from eventide.errors import InputError
from eventide.streams.count_files import read_matrix
from eventide.streams.real import REAL_STREAMS, count_raw, data_folder, read_real, why_missing


@pytest.fixture
def folder(tmp_path):
    """A data folder with one stream of each format."""
    files = {
        "unemployment": "t,thousands\n0,5\n1,7\n2,0\n",
        "retail_product_day": "t,bin,count\n0,85123A,2\n0,10002,1\n2,10002,9\n",
    }
    index = {
        "unemployment": {"file": "unemployment.csv.gz", "format": "matrix", "T": 3, "d": 1},
        "retail_product_day": {"file": "retail_product_day.csv.gz", "format": "long", "T": 5, "d": 2},
        "retail_events": {"file": "retail_events.csv.gz", "format": "events"},
        "flu_death": {"file": "flu_death.csv.gz", "format": "matrix", "T": 3, "d": 1},
    }
    for name, text in files.items():
        (tmp_path / f"{name}.csv.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "index.json").write_text(json.dumps(index))
    return tmp_path


def test_a_matrix_is_read(folder):
    matrix = read_real("unemployment", folder)
    assert matrix.counts.tolist() == [[5], [7], [0]]
    assert matrix.bins == ("thousands",)


def test_a_long_file_gets_its_empty_cells_steps_and_end(folder):
    matrix = read_real("retail_product_day", folder)
    assert matrix.bins == ("10002", "85123A")
    assert matrix.counts.tolist() == [[1, 2], [0, 0], [9, 0], [0, 0], [0, 0]]


@pytest.mark.parametrize("change", [{"T": 2}, {"d": 5}])
def test_a_file_that_is_not_as_the_index_says_is_refused(folder, change):
    index = json.loads((folder / "index.json").read_text())
    index["unemployment"] |= change
    (folder / "index.json").write_text(json.dumps(index))
    with pytest.raises(InputError, match=r"unemployment\.csv\.gz is not as long and wide"):
        read_real("unemployment", folder)


def test_what_is_there_is_not_missing(folder):
    assert why_missing("unemployment", folder) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [("state_flu", "does not list it"), ("flu_death", "is not there"), ("retail_events", "does not list it")],
)
def test_a_missing_stream_is_explained(folder, name, reason):
    assert reason in why_missing(name, folder)


@pytest.mark.parametrize("text", [None, "not json", "[1]", '{"unemployment": {"file": "unemployment.csv.gz"}}'])
def test_a_folder_without_a_good_index_lists_nothing(folder, text):
    (folder / "index.json").unlink()
    if text is not None:
        (folder / "index.json").write_text(text)
    assert "does not list it" in why_missing("unemployment", folder)


def test_without_a_folder_everything_is_missing():
    assert "no data folder was given" in why_missing("unemployment", None)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    assert f"there is no folder {tmp_path / 'gone'};" in why_missing("unemployment", tmp_path / "gone")


def test_the_folder_given_comes_before_the_variable(monkeypatch, tmp_path):
    monkeypatch.delenv("EVENTIDE_DATA", raising=False)
    assert data_folder() is None
    monkeypatch.setenv("EVENTIDE_DATA", "elsewhere")
    assert str(data_folder()) == "elsewhere"
    assert data_folder(tmp_path) == tmp_path


def test_a_folder_that_is_given_and_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="there is no folder"):
        data_folder(tmp_path / "nowhere")


def test_every_stream_has_a_description_an_origin_and_a_licence_note():
    assert len(REAL_STREAMS) == 15
    assert all(all(text.strip() for text in stream[:3]) for stream in REAL_STREAMS.values())


def test_raw_events_stand_in_for_a_stream_that_is_not_there(folder):
    (folder / "retail_product_day.csv.gz").unlink()
    assert "retail_product_day.csv.gz is not there" in why_missing("retail_product_day", folder)
    events = "timestamp,user,bin\n2010-12-03 09:00,1,85123A\n2010-12-01 08:26,2,10002\n2010-12-03 10:00,1,85123A\n"
    (folder / "retail_events.csv.gz").write_bytes(gzip.compress(events.encode()))
    assert why_missing("retail_product_day", folder) is None
    matrix = read_real("retail_product_day", folder)
    assert matrix.bins == ("10002", "85123A")
    assert matrix.counts.shape == (374, 2)
    assert matrix.counts[:3].tolist() == [[1, 0], [0, 0], [0, 2]]
    assert matrix.counts.sum() == 3


def test_the_file_of_counts_comes_before_the_raw_events(folder):
    (folder / "retail_events.csv.gz").write_bytes(gzip.compress(b"timestamp,bin\n2010-12-03,85123A\n"))
    assert read_real("retail_product_day", folder).counts.shape == (5, 2)


def test_a_stream_without_raw_events_says_so(folder):
    with pytest.raises(InputError, match="the raw events of unemployment are not in"):
        count_raw("unemployment", folder)


def test_any_wide_file_is_a_matrix(tmp_path):
    (tmp_path / "counts.csv").write_text("a,b\n1,2\n3,4\n")
    matrix = read_matrix(tmp_path / "counts.csv")
    assert np.array_equal(matrix.counts, [[1, 2], [3, 4]])
    assert matrix.bins == ("a", "b")


def test_bins_of_a_listed_stream_may_have_numbers_for_names(tmp_path):
    """As counties have; of any other file nobody knows whether such a first row is a header."""
    (tmp_path / "counties.csv.gz").write_bytes(gzip.compress(b"t,1001,1003\n0,7,8\n1,9,10\n"))
    (tmp_path / "index.json").write_text('{"counties": {"file": "counties.csv.gz", "T": 2, "d": 2}}')
    matrix = read_real("counties", tmp_path)
    assert matrix.bins == ("1001", "1003")
    assert matrix.counts.tolist() == [[7, 8], [9, 10]]
    with pytest.raises(InputError, match="begins with a row of numbers"):
        read_matrix(tmp_path / "counties.csv.gz")
