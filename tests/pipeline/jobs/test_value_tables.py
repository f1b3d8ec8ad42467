"""On Spark and of a watched folder, decoded keys and values are those of one process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dissector.values.value_settings import ValueSettings
from pipeline.jobs.job import Request, make_tables
from pipeline.jobs.query import read
from pipeline.tables.decoded_columns import with_absolute_paths
from pipeline.tables.table_builder import TableOptions
from pipeline.tables.table_schemas import SCHEMAS
from pipeline.watch.stream_job import IDLE_NS, Watch
from tests.corpus import FOLDER
from tests.dissector.values.value_captures import ENTRIES, write_values
from tests.pipeline.command_tables import Row, assert_same, tables_of
from tests.tcp_captures import START_NS, STEP_NS, Packet, write

pytestmark = pytest.mark.spark

FORMATS = ("others=json", "demo.orders.key=text", "demo.metrics=hex")


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("registry") / "registry.json"
    path.write_text(json.dumps(ENTRIES))
    return str(path)


def options(dump: str) -> TableOptions:
    values = with_absolute_paths(ValueSettings((dump,), FORMATS))
    return TableOptions(tables=frozenset(("records",)), values=values)


def expected(files: list[Path], tmp_path: Path, dump: str) -> dict[str, list[Row]]:
    given = [word for each in FORMATS for word in ("--value-format", each)]
    rows = tables_of(files, tmp_path, "--values", dump, *given)["records"]
    for name in ("key_decoded", "value_decoded", "value_schema", "value_problem"):
        assert any(row[name] is not None for row in rows)
    return {"records": rows}


def assert_rows(spark: SparkSession, out: Path, rows: dict[str, list[Row]]) -> None:
    schema = SCHEMAS["records"]
    found = read(spark, str(out), "records").select(*schema.names).toArrow().cast(schema)
    assert_same({"records": found}, rows)


def test_values_of_a_job(spark: SparkSession, tmp_path: Path, dump: str) -> None:
    files = [write_values(tmp_path / "values.pcap"), FOLDER / "demo.pcap"]
    out = tmp_path / "out"
    paths = [str(file) for file in files]
    make_tables(spark, Request(paths, str(out), options(dump), 20_000, 0, overwrite=True))
    assert_rows(spark, out, expected(files, tmp_path, dump))


def test_values_of_a_watched_folder(spark: SparkSession, tmp_path: Path, dump: str) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    files = [write_values(folder / "a.pcap")]
    quiet = Packet(START_NS + 3 * IDLE_NS + STEP_NS, b"\xff" * 12 + b"\x08\x06" + bytes(46))
    write(folder / "z.pcap", [quiet])
    Watch(str(folder), str(out), options(dump), files=1).start(spark, once=True).awaitTermination()
    assert_rows(spark, out, expected(files, tmp_path, dump))
