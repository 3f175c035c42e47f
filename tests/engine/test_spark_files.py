"""A file, a folder or a table is read whatever it is called and whatever lies beside it; nothing else is read."""

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from eventide.engines.spark_files import read_source
from eventide.errors import InputError

pytestmark = pytest.mark.engine
EVENTS = "timestamp,user,bin\n2024-03-30T00:00:05Z,anna,north\n2024-03-30T00:00:06Z,ben,north\n"


def lines_read(spark, path, checkpoint):
    """The lines that a query over a source hands over."""
    return [row.value for row in rows_read(spark, path, checkpoint)]


def rows_read(spark, source, checkpoint):
    rows = []
    frame, _ = read_source(spark, source)
    writer = frame.writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
    writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()
    return rows


@pytest.mark.parametrize("name", ["plain/events.csv", "odd [1]{2}*,3/événements ?[a],b.csv", "day=1/events.csv"])
def test_a_file_is_read_and_nothing_else(spark, tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir()
    path.write_text(EVENTS)
    for below in ("work/open/batch=0/step=1", "more"):  # what a killed publisher leaves, and a file of the same name
        (path.parent / below).mkdir(parents=True)
        (path.parent / below / path.name).write_text(EVENTS)
    assert lines_read(spark, path, tmp_path / "checkpoint") == EVENTS.splitlines()[1:]


def test_a_link_leads_to_its_file(spark, tmp_path):
    (tmp_path / "archive").mkdir()
    (tmp_path / "archive" / "2024.csv").write_text(EVENTS)
    (tmp_path / "events.csv").symlink_to(tmp_path / "archive" / "2024.csv")
    assert lines_read(spark, tmp_path / "events.csv", tmp_path / "checkpoint") == EVENTS.splitlines()[1:]


@pytest.mark.parametrize("name", ["_events.csv", ".events.csv"])
def test_a_file_that_spark_would_pass_over_is_refused(spark, tmp_path, name):
    (tmp_path / name).write_text(EVENTS)
    with pytest.raises(InputError, match="Spark passes over"):
        read_source(spark, tmp_path / name)


def test_a_parquet_file_is_read_and_nothing_else(spark, tmp_path):
    for path in (tmp_path / "events.parquet", tmp_path / "day=1" / "events.parquet"):
        path.parent.mkdir(exist_ok=True)
        parquet.write_table(pa.table({"value": ["anna", "ben"]}), path)
    assert sorted(lines_read(spark, tmp_path / "events.parquet", tmp_path / "checkpoint")) == ["anna", "ben"]


def test_a_folder_is_read_with_all_below_it(spark, tmp_path):
    for name in ("folder [1]/a.csv", "folder [1]/more/b.csv", "folder [1]/_by-product/c.txt", "d.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(EVENTS)
    lines = lines_read(spark, tmp_path / "folder [1]", tmp_path / "checkpoint")
    assert sorted(lines) == sorted(EVENTS.splitlines()[1:] * 2)


def test_columns_that_folders_name_are_texts(spark, tmp_path):
    for hour, user in (("07", "anna"), ("18", "ben")):
        (tmp_path / "table" / f"hour={hour}").mkdir(parents=True)
        parquet.write_table(pa.table({"user": [user]}), tmp_path / "table" / f"hour={hour}" / "0.parquet")
    rows = rows_read(spark, tmp_path / "table", tmp_path / "checkpoint")
    assert sorted((row.hour, row.user) for row in rows) == [("07", "anna"), ("18", "ben")]


def test_a_table_is_read_by_its_name(spark, tmp_path):
    place = tmp_path / "visits"
    spark.sql(f"create table visits_of_test (user string) using parquet location '{place}'")
    try:
        spark.sql("insert into visits_of_test values ('anna'), ('ben')")
        rows = rows_read(spark, "table:visits_of_test", tmp_path / "checkpoint")
    finally:
        spark.sql("drop table visits_of_test")
    assert sorted(row.user for row in rows) == ["anna", "ben"]


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"a.csv": "timestamp,bin\n", "b.csv": "bin,timestamp\n"}, "begin with different lines"),
        ({"a.csv": "timestamp,bin\n", "b.jsonl": "{}\n"}, "several formats"),
        ({"day=1/a.csv": "timestamp,bin\n", "b.csv": "timestamp,bin\n"}, "only some folders"),
        ({"day=1/a.csv": "timestamp,bin\n"}, "to Parquet files only"),
        ({"_delta_log/0.json": "{}\n"}, "a Delta table"),
        ({"readme": "text\n"}, "move it away"),
    ],
)
def test_a_folder_that_spark_would_read_otherwise_is_refused(spark, tmp_path, files, sentence):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=sentence):
        read_source(spark, tmp_path)
