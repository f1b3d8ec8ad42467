"""
Tables of Delta Lake and Iceberg: refused before the work where the jar is missing, else all rows.

`DELTA_JARS` and `ICEBERG_JARS` name the jars of a release for the Spark that is installed,
separated by commas.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dissector.cli import main
from dissector.errors import UsageError
from pipeline import Request, TableOptions, make_tables, open_session, read
from pipeline.jobs.job_state import SUCCESS_FILE
from pipeline.jobs.lakehouse import CATALOG, PACKAGES, require_format, settings_for
from pipeline.tables.table_schemas import SCHEMAS

DEMO = str(Path(__file__).parents[3] / "captures/demo.pcap")

TABLES = ("connections", "exchanges", "findings")

FEW_TASKS = {"spark.sql.shuffle.partitions": "1", "spark.databricks.delta.snapshotPartitions": "1"}


@pytest.mark.spark
@pytest.mark.parametrize("name", PACKAGES)
def test_a_missing_jar_is_named(name: str, spark: SparkSession, tmp_path: Path) -> None:
    said = rf"^--format {name} needs --conf spark\.jars\.packages=[a-z.]+:.*_2\.13:VERSION.*: \S"
    with pytest.raises(UsageError, match=said) as caught:
        require_format(spark, name, str(tmp_path))
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spark
def test_the_command_ends_before_the_work(
    without_session: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["pipeline", DEMO, "--out", str(out), "--format", "iceberg"]) == 2
    stderr = capsys.readouterr().err
    assert stderr.startswith("kafkashark: --format iceberg needs --conf spark.jars.packages=org.")
    assert stderr.count("\n") == 1
    assert not out.exists()


@pytest.mark.spark
@pytest.mark.parametrize("name", PACKAGES)
def test_tables_of_a_format_have_the_rows(name: str, without_session: None, tmp_path: Path) -> None:
    """Also if the driver was lost after some of them were made."""
    jars = os.environ.get(f"{name.upper()}_JARS")
    if not jars:
        pytest.skip(f"{name.upper()}_JARS names no jars")
    out = str(tmp_path / "o'ut")
    options = TableOptions(tables=frozenset(TABLES), folders=("date", "cluster=prod"))
    request = Request([DEMO], out, options, format=name)
    settings = settings_for(name, out) | FEW_TASKS | {"spark.jars": jars}
    with open_session("local[2]", settings) as spark:
        # Until the marker is written, nothing says that the job is complete.
        make_tables(spark, request)
        Path(out, SUCCESS_FILE).unlink()
        made = make_tables(spark, replace(request, resume=True))
        found = {table: _rows(spark, name, out, table) for table in TABLES}
        make_tables(spark, Request([DEMO], str(tmp_path / "parquet"), options))
        for table in TABLES:
            rows = read(spark, str(tmp_path / "parquet"), table).collect()
            expected = [row.asDict() for row in rows]
            assert _sorted(table, found[table]) == _sorted(table, expected)
            assert len(expected) == made.rows[table]
        assert {row["cluster"] for row in found["exchanges"]} == {"prod"}


def _rows(spark: SparkSession, name: str, out: str, table: str) -> list[dict[str, Any]]:
    if name == "iceberg":
        rows = spark.table(f"{CATALOG}.iceberg.{table}")
    else:
        rows = spark.read.format(name).load(f"{out}/{table}")
    return [row.asDict() for row in rows.collect()]


def _sorted(table: str, rows: list[dict[str, Any]]) -> list[str]:
    return sorted(repr([row[name] for name in SCHEMAS[table].names]) for row in rows)
