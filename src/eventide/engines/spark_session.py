"""A Spark session as it comes: of this process, or of a server through Spark Connect; and one that keeps quiet.

A session through Connect has no `sparkContext`, so nothing in this room asks for one.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from eventide.errors import missing_extra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MANY_ROWS = 1 << 16  # more than a cluster has cores
QUIET = Path(__file__).with_name("quiet_log4j2.properties")
JAVA_OPTIONS = (  # as defaults of Spark's settings: what a user's own settings say comes before them
    f"-Dlog4j2.configurationFile={QUIET.as_uri()}",
    "-Dspark.ui.enabled=false",  # a page that counts events, and takes a second to start
    # Java compiles a method well only once it was called ten times as often as by default: most of what Spark does to
    # begin is over by then, and compiling it took a third of a cold start. What runs long is compiled well in the end.
    "-XX:+IgnoreUnrecognizedVMOptions",  # other Javas may not have these
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)


def quiet_session() -> SparkSession:
    """The session that Spark's own settings name (spark-defaults.conf, PYSPARK_SUBMIT_ARGS, SPARK_REMOTE).

    Where a Java is started for it, it logs errors only and has no web page, unless SPARK_SUBMIT_OPTS says something
    else; or Spark's settings, of the page.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise missing_extra("Spark needs the extra spark", "spark") from None
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_SUBMIT_OPTS", " ".join(JAVA_OPTIONS))
    builder = SparkSession.builder.appName("eventide")
    if "SPARK_REMOTE" not in os.environ:  # a server has its own settings
        builder = builder.config("spark.ui.showConsoleProgress", "false")
    session: SparkSession = builder.getOrCreate()
    return session


def cores_of(spark: SparkSession) -> int:
    """How many tasks run side by side: into so many parts Spark cuts a range, whose last number is in the last part."""
    last = spark.range(MANY_ROWS).where(f"id = {MANY_ROWS - 1}")
    ((part,),) = last.selectExpr("spark_partition_id()").collect()
    return int(part) + 1


@contextlib.contextmanager
def settings_set(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Settings of a session for as long as something begins."""
    before = {name: str(spark.conf.get(name)) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)
