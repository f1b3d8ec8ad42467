"""Summaries on Spark equal those of `stats`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from dissector.cli import main
from pipeline.jobs.job import Request, make_tables
from pipeline.jobs.summaries import make_summaries
from pipeline.tables.table_builder import TableOptions

pytestmark = pytest.mark.spark

CAPTURES = Path(__file__).parents[3] / "captures"

Row = Mapping[str, Any]


def statistics(file: str, target: Path, *options: str) -> list[Row]:
    """Return the rows of `stats`."""
    assert main(["stats", file, "-T", "ndjson", "-o", str(target), *options]) == 0
    rows = [json.loads(line) for line in target.read_text().splitlines()]
    return [row for row in rows if row["section"] != "capture"]


def made_rows(table: DataFrame) -> Iterator[dict[str, Any]]:
    """Yield the rows of a summary, with windows in the format of `stats`."""
    for row in table.collect():
        values = row.asDict()
        if "window" in values:
            values["minute"] = f"{values.pop('window'):%Y-%m-%d %H:%M}Z"
        yield values


def assert_same_columns(rows: list[Row], made: list[dict[str, Any]], *but: str) -> None:
    """Compare the columns of summaries, in any order."""
    assert made
    names = [name for name in made[0] if name not in but]
    ours = [[row[name] for name in names] for row in rows]
    theirs = [[row[name] for name in names] for row in made]
    assert sorted(ours, key=repr) == sorted(theirs, key=repr)


def test_summaries_equal_stats(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    file, out = str(CAPTURES / "demo.pcap"), tmp_path / "out"
    tables = TableOptions(tables=frozenset(("exchanges", "fields")))
    make_tables(spark, Request([file], str(out), tables, overwrite=True))
    made = {each: list(made_rows(rows)) for each, rows in make_summaries(spark, str(out)).items()}

    def ours(*options: str) -> list[Row]:
        return statistics(file, tmp_path / "stats.ndjson", *options)

    assert_same_columns(ours("--talkers"), made["talkers"])
    assert_same_columns(ours("--topics"), made["topic_users"])
    rates = ("exchanges_per_s", "bytes_per_s")
    assert_same_columns(ours("--by", "minute,broker,api"), made["throughput"], *rates)
    assert_same_columns(ours("--by", "minute,api,error,broker"), made["errors"], "clients")
    times = [row | {row["by"]: row["name"]} for row in made["response_times"]]
    for by in ("api", "topic", "broker"):
        keys = dict.fromkeys(("minute", "api", by))
        rows = ours("--by", ",".join(keys))
        assert_same_columns(
            rows, [row for row in times if row["by"] == by], "by", "name", "error_rate"
        )
