"""Findings and lag of any division of a collection equal those of one process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.sql import SparkSession

from dissector.cli import main
from pipeline.jobs.job import Request, make_tables
from pipeline.jobs.local_job import dissect
from pipeline.jobs.query import read
from pipeline.tables.table_builder import TableOptions
from pipeline.tables.table_schemas import FINDINGS, LAGS, PARTITION_LAGS
from pipeline.tables.whole_tables import WHOLE
from tests.pipeline.split_captures import parts_of_demo

CAPTURES = Path(__file__).parents[3] / "captures"
OPTIONS = TableOptions(tables=WHOLE, lag_interval_s=1)

Rows = list[dict[str, Any]]


def expected_of(files: Sequence[str], folder: Path) -> dict[str, Rows]:
    """Return the rows of the commands."""
    findings, lags = folder / "findings.ndjson", folder / "lags.parquet"
    assert main(["findings", *files, "--keep-copies", "-T", "ndjson", "-o", str(findings)]) == 0
    given = ("--keep-copies", "--interval", "1", "-T", "parquet", "-o", str(lags))
    assert main(["groups", *files, *given]) == 0
    rows = map(json.loads, findings.read_text().splitlines())
    found = {FINDINGS: list(_flat([row for row in rows if row.pop("section") == "finding"]))}
    every = pl.read_parquet(lags).to_dicts()
    for table in (LAGS, PARTITION_LAGS):
        found[table] = [row for row in every if row["section"] == table]
    return found


def _flat(findings: Rows, owner: str | None = None) -> Iterator[dict[str, Any]]:
    for each in findings:
        joined = each.pop("joined")
        yield {**each, "joined_to": owner}
        yield from _flat(joined, each["id"])


def assert_same(got: dict[str, Rows], expected: dict[str, Rows]) -> None:
    """Compare rows; those of lag have a time in ns too, and only their columns."""
    # Findings of one rank, source and count are in the order of windows.
    assert sorted(got[FINDINGS], key=repr) == sorted(expected[FINDINGS], key=repr)
    for table in (LAGS, PARTITION_LAGS):
        times = [row.pop("time_ns") for row in got[table]]
        assert [
            {name: row[name] for name in mine}
            for row, mine in zip(expected[table], got[table], strict=True)
        ] == got[table]
        moments = pl.Series([row["time"] for row in got[table]]).str.to_datetime(time_unit="ns")
        assert moments.dt.timestamp("ns").to_list() == times


@pytest.mark.thinned(3)
@pytest.mark.parametrize(
    "names",
    [
        ["demo.pcap"],
        ["kafka4-request-log.log.gz", "kafka39-request-log.log.gz"],
        ["kafka4-leader-change.pcap", "kafka39-librdkafka-group.pcap", "broken.pcap"],
    ],
)
@pytest.mark.parametrize("range_bytes", [20_000, 1 << 20])
def test_rows_equal_those_of_one_process(
    names: list[str], range_bytes: int, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.pcap"
    broken.write_bytes((CAPTURES / "kafka4-errors.pcap").read_bytes()[:-100])
    files = [str(broken if name == broken.name else CAPTURES / name) for name in names]
    expected = expected_of(files, tmp_path)
    assert expected[FINDINGS]
    made = dissect(files, OPTIONS, range_bytes=range_bytes)
    assert_same({name: table.to_pylist() for name, table in made.items()}, expected)


def test_only_what_is_asked_for_is_made() -> None:
    made = dissect([str(CAPTURES / "demo.pcap")], TableOptions(tables=frozenset((LAGS,))))
    assert made.keys() == {LAGS}
    assert made[LAGS].num_rows == 1


@pytest.mark.spark
def test_spark_has_the_rows_of_one_process(spark: SparkSession, tmp_path: Path) -> None:
    files = parts_of_demo(tmp_path, lambda port, to_port: int(port < to_port))
    expected = expected_of(files, tmp_path)
    out = str(tmp_path / "out")
    counts = make_tables(spark, Request(files, out, OPTIONS, 20_000)).rows
    got = {}
    for table in (FINDINGS, LAGS, PARTITION_LAGS):
        got[table] = read(spark, out, table).drop("date").toArrow().to_pylist()
        assert len(got[table]) == counts[table]
    assert_same(got, expected)
