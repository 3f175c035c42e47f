"""A driver that publishes a folder of CSV files through Spark, as its only argument says in JSON. Not a test itself."""

import json
import sys

import eventide as ev
from eventide.engines.spark import publish
from eventide.live.stores.open_store import open_store


def spark_session(master, **settings):
    """A session that stays on loopback and keeps quiet; for sc://... one of a server, which has its own settings."""
    from pyspark.sql import SparkSession

    if master.startswith("sc://"):
        return SparkSession.builder.remote(master).getOrCreate()
    builder = SparkSession.builder.master(master).config("spark.driver.host", "127.0.0.1")
    for name, value in {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        **settings,
    }.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def described(life):
    """The stream of a life; looks at every step and spends all it may, so that a number too many would show."""
    cut = {name: value for name, value in life["steps"].items() if name != "skew"}
    told = {"epsilon": 1, "window": life["window"], "bins": life["bins"], "mechanism": "uniform", "filter": "none"}
    told |= {"parameters": {"noise": ev.noise.Zero()}} if life["noise"] == "zero" else {}
    return ev.StreamSpec(**told, user="user", max_per_step=life["most"], **cut)


def mechanism(life):
    return described(life).build_mechanism()


def frame(spark, life):
    """The files, some at a time."""
    columns = ["timestamp", "user", "bin", *([life["arrival"]] if life["arrival"] else [])]
    columns += ["fare"] if "statistic" in life["steps"] else []
    reader = spark.readStream.schema(", ".join(f"{name} string" for name in columns)).option("header", True)
    return reader.option("maxFilesPerTrigger", life["files"]).csv(life["source"])


def main():
    life = json.loads(sys.argv[1])
    spark = spark_session(life["master"], **{"spark.executor.memory": "700m", "spark.executor.cores": "1"})
    publishing = publish(
        frame(spark, life),
        mechanism=mechanism(life),
        store=open_store(life["store"], for_tests=life["noise"] == "zero"),
        work=life["work"],
        sinks=[life["out"], "-"],
        user="user",
        bin="bin",
        arrival=life["arrival"],
        available_now=True,
        **life["steps"],
    )
    try:
        publishing.await_termination()
    finally:
        spark.stop()


if __name__ == "__main__":
    main()
