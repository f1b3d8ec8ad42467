"""`docs/pipeline.md` is correct."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dissector.cli.parsing.command_line import named_options
from dissector.cli.parsing.declarations import value_types
from pipeline.cli import PipelineOptions
from pipeline.jobs.job import Request, make_tables
from pipeline.jobs.query import views
from pipeline.jobs.session import open_session
from pipeline.tables.table_builder import TableOptions
from pipeline.tables.table_schemas import SCHEMAS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/pipeline.md").read_text()
QUERIES = re.findall(r"```sql\n(.*?)```", TEXT, re.DOTALL)
BLOCKS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)


def test_every_documented_option_exists() -> None:
    named = set(re.findall(r"`(--[a-z][a-z-]+)", TEXT))
    assert named <= {*named_options(PipelineOptions.declared(), value_types(PipelineOptions))}


def test_every_table_is_documented() -> None:
    assert set(re.findall(r"^\| `(\w+)` \| \w", TEXT, re.MULTILINE)) >= set(SCHEMAS)


@pytest.mark.spark
def test_the_queries_run(spark: SparkSession, tmp_path: Path) -> None:
    names = ["demo.pcap", "kafka39-kafka-python-as-0.10.0.pcap"]
    captures = [str(ROOT / "captures" / name) for name in names]
    fields = frozenset(("client_software_name", "client_software_version"))
    options = TableOptions(tables=frozenset(SCHEMAS), fields=fields)
    make_tables(spark, Request(captures, str(tmp_path), options))
    views(spark, str(tmp_path))
    old, percentiles, who, errors, written, health = (
        [row.asDict() for row in spark.sql(query).collect()] for query in QUERIES
    )
    assert {row["api"] for row in old} >= {"Produce", "Fetch"}
    assert percentiles
    assert all(row["p99_ms"] > 0 for row in percentiles)
    assert {row["client_id"] for row in who} >= {"billing-1"}
    assert any(row["error"] == "MEMBER_ID_REQUIRED" for row in errors)
    assert any(row["topic"] == "demo.orders" and row["bytes"] > 0 for row in written)
    assert health[0]["all"] > 10


@pytest.mark.spark
def test_the_python_examples_run(
    without_session: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "captures").symlink_to(ROOT / "captures")
    of_queries, of_source = BLOCKS
    exec(of_queries, {"OUT": "tables", "QUERIES": QUERIES})
    assert capsys.readouterr().out.count("+--") >= len(QUERIES)
    with open_session("local[1]") as spark:
        exec(of_source, {"spark": spark})
