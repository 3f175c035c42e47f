"""A file is read whatever it is called and whatever lies beside it, or refused; nothing else is read."""

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from eventide.engines.spark_files import read_file
from eventide.errors import InputError

pytestmark = pytest.mark.engine
EVENTS = "timestamp,user,bin\n2024-03-30T00:00:05Z,anna,north\n2024-03-30T00:00:06Z,ben,north\n"


def lines_read(spark, path, checkpoint):
    """The lines that a query over the file hands over."""
    lines = []
    frame, _ = read_file(spark, path)
    writer = frame.writeStream.foreachBatch(lambda batch, _: lines.extend(row.value for row in batch.collect()))
    writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()
    return lines


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
        read_file(spark, tmp_path / name)


def test_a_parquet_file_is_read_and_nothing_else(spark, tmp_path):
    for path in (tmp_path / "events.parquet", tmp_path / "day=1" / "events.parquet"):
        path.parent.mkdir(exist_ok=True)
        parquet.write_table(pa.table({"value": ["anna", "ben"]}), path)
    assert sorted(lines_read(spark, tmp_path / "events.parquet", tmp_path / "checkpoint")) == ["anna", "ben"]
