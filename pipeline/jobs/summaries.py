"""
Summaries of exchanges over windows of time, made by Spark; the names and figures of `stats`.

    OUT/summaries/response_times    latencies and errors per API and window, and the same per
                                    client, topic and broker
    OUT/summaries/throughput        requests and bytes per broker, API and window
    OUT/summaries/errors            number of errors in responses, by error
    OUT/summaries/talkers           clients by traffic, the greatest first
    OUT/summaries/topic_users       clients of each topic, with API versions
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (as everybody calls it)

from pipeline.jobs.query import read, timestamp_column
from pipeline.storage.atomic_files import join_path

FOLDER = "summaries"

WINDOW = "1 minute"

ACCURACY = 1000
"""The error of percentiles is at most a thousandth of the rows."""


def make_summaries(spark: SparkSession, out: str, window: str = WINDOW) -> dict[str, DataFrame]:
    """
    Write the summaries of tables that a job has written; return them.

    Args:
        spark: A session.
        out: The folder of the tables; the table of exchanges must be there.
        window: The length of the windows, in Spark's notation.
    """
    exchanges = read(spark, out, "exchanges")
    time = F.coalesce("request_time_ns", "response_time_ns")
    timed = exchanges.withColumn("time_ns", time)
    timed = timed.withColumn("window", F.window(timestamp_column("time_ns"), window).start)
    timed = timed.withColumn("endpoint", F.col("client"))
    timed = timed.withColumn("client", _host("endpoint"))
    made = {
        "response_times": response_times(timed),
        "throughput": throughput(timed, window),
        "errors": errors(timed),
        "talkers": talkers(timed),
        "topic_users": topic_users(timed, read(spark, out, "fields")),
    }
    for name, rows in made.items():
        rows.coalesce(1).write.mode("overwrite").parquet(join_path(out, FOLDER, name))
    return {name: spark.read.parquet(join_path(out, FOLDER, name)) for name in made}


def response_times(exchanges: DataFrame) -> DataFrame:
    """
    Return latencies by window and API: as a whole, and by client, topic and broker.

    `by` is `api`, `client_id`, `client`, `topic` or `broker`, and `name` is its value.
    """
    names = F.array(
        _named("api", "api"),
        _named("client_id", "client_id"),
        _named("client", "client"),
        _named("broker", "broker"),
    )
    topics = F.transform(
        "topics", lambda topic: F.struct(F.lit("topic").alias("by"), topic.alias("name"))
    )
    each = exchanges.withColumn("each", F.explode(F.concat(names, topics)))
    failed = F.size("errors") > 0
    return (
        each.groupBy("window", "api", "each.by", "each.name")
        .agg(
            F.count("*").alias("count"),
            F.count_if(failed).alias("errors"),
            F.count_if(F.col("status") == "unanswered").alias("unanswered"),
            F.min("latency_ms").alias("min_ms"),
            *(_percentile(share) for share in (50, 95, 99)),
            F.max("latency_ms").alias("max_ms"),
        )
        .withColumn("error_rate", F.col("errors") / F.col("count"))
        .orderBy("window", "by", "name", "api")
    )


def throughput(exchanges: DataFrame, window: str) -> DataFrame:
    """Return requests and bytes by window, broker and API, and the rates per second."""
    length = F.expr(f"interval {window}")
    seconds = F.unix_timestamp(F.col("window") + length) - F.unix_timestamp("window")
    return (
        exchanges.groupBy("window", "broker", "api")
        .agg(
            F.count("*").alias("count"),
            *(_sum(name) for name in ("request_bytes", "response_bytes")),
        )
        .withColumn("exchanges_per_s", F.col("count") / seconds)
        .withColumn("bytes_per_s", (F.col("request_bytes") + F.col("response_bytes")) / seconds)
        .orderBy("window", "broker", "api")
    )


def errors(exchanges: DataFrame) -> DataFrame:
    """Return the number of each error in responses, by window, API and broker."""
    return (
        exchanges.withColumn("error", F.explode("errors"))
        .groupBy("window", "api", "error", "broker")
        .agg(F.count("*").alias("count"), F.count_distinct("endpoint").alias("clients"))
        .orderBy("window", "api", "error", "broker")
    )


def talkers(exchanges: DataFrame) -> DataFrame:
    """Return the traffic of each client, the greatest first."""
    return (
        exchanges.groupBy("client", "client_id", "broker")
        .agg(
            F.count("*").alias("count"),
            F.count_distinct("connection").alias("connections"),
            *(_sum(name) for name in ("request_bytes", "response_bytes")),
        )
        .withColumn("bytes", F.col("request_bytes") + F.col("response_bytes"))
        .orderBy(F.desc("bytes"), "client", "client_id", "broker")
    )


def topic_users(exchanges: DataFrame, fields: DataFrame) -> DataFrame:
    """
    Return the clients of each topic, with the versions of the APIs and of the client software.

    Clients send their name and version in ApiVersions from version 3 on, once per connection.
    """
    client_fields = fields.where(
        F.col("path").isin("client_software_name", "client_software_version")
    )
    user = ("client_id", "client", "software_name", "software_version")
    software = client_fields.groupBy("connection").agg(
        *(
            F.max(F.when(F.col("path") == f"client_{name}", F.col("text"))).alias(name)
            for name in ("software_name", "software_version")
        )
    )
    return (
        exchanges.withColumn("topic", F.explode("topics"))
        .join(software, "connection", "left")
        .groupBy("topic", "api", "api_version", *user)
        .agg(
            F.count("*").alias("count"),
            *(_sum(name) for name in ("request_bytes", "response_bytes")),
        )
        .orderBy("topic", "api", "client_id", "client", "api_version", "software_name")
    )


def _sum(column: str) -> Column:
    return F.coalesce(F.sum(column), F.lit(0)).alias(column)


def _named(by: str, column: str) -> Column:
    return F.struct(F.lit(by).alias("by"), F.col(column).alias("name"))


def _percentile(share: int) -> Column:
    return F.percentile_approx("latency_ms", share / 100, ACCURACY).alias(f"p{share}_ms")


def _host(column: str) -> Column:
    """Return the address of an endpoint, without its port."""
    return F.regexp_replace(column, r":\d+$", "")
