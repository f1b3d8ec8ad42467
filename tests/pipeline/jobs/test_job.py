"""On Spark, tables equal those of the commands for any division of a collection."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark import RDD
from pyspark.sql import SparkSession

from dissector.errors import DissectorError, UsageError
from pipeline.jobs.job import Request, make_tables
from pipeline.jobs.query import read, views
from pipeline.jobs.summaries import make_summaries
from pipeline.tables.table_builder import TableOptions
from pipeline.tables.table_schemas import SCHEMAS
from tests.dissector.engine.reading.test_capture import beat, crossing, heartbeat
from tests.pipeline.command_tables import assert_same, tables_of
from tests.pipeline.split_captures import imperfect_packets, parts_of_demo, record_starts
from tests.tcp_captures import Wire, pcapng_file, write

pytestmark = pytest.mark.spark

CAPTURES = Path(__file__).parents[3] / "captures"
ALL = TableOptions(tables=frozenset(SCHEMAS))
FEW = TableOptions(tables=frozenset(("exchanges",)))


def job_tables(
    spark: SparkSession, files: Sequence[str], out: Path, range_bytes: int, parts: int = 0
) -> dict[str, pa.Table]:
    """Return the tables written by a job."""
    request = Request(files, str(out), ALL, range_bytes, parts, overwrite=True)
    counts = make_tables(spark, request).rows
    found = {}
    for table, schema in SCHEMAS.items():
        rows = read(spark, str(out), table).select(*schema.names)
        found[table] = rows.toArrow().cast(schema)
        assert found[table].num_rows == counts[table]
    assert not (out / "_work").exists()
    return found


@pytest.mark.parametrize(
    ("names", "range_bytes"),
    [
        (["demo.pcap"], 1 << 20),
        (["demo.pcap"], 20_000),
        (["kafka4-franz-go.pcap", "kafka39-librdkafka-transactions.pcap"], 50_000),
        (["librdkafka-large.pcap.gz", "librdkafka-group-cooperative.pcapng"], 1 << 20),
    ],
)
def test_captures_of_real_clients(
    spark: SparkSession, names: list[str], range_bytes: int, tmp_path: Path
) -> None:
    files = [str(CAPTURES / name) for name in names]
    got = job_tables(spark, files, tmp_path / "out", range_bytes)
    assert got["exchanges"].num_rows > 10
    in_order = dict.fromkeys(got["exchanges"].sort_by("connection")["capture"].to_pylist())
    assert_same(got, tables_of(list(in_order), tmp_path))


@pytest.mark.parametrize("seed", range(3))
def test_lost_repeated_and_late_packets_over_files(
    spark: SparkSession, seed: int, tmp_path: Path
) -> None:
    packets = imperfect_packets(seed)
    third = len(packets) // 3
    parts = [packets[a:b] for a, b in pairwise([0, third, 2 * third, len(packets)])]
    files = [write(tmp_path / f"{n}.pcap", part) for n, part in enumerate(parts)]
    # The last has so few packet headers that its connections are read again, without shards.
    range_bytes, parts = [(3000, 1), (8000, 2), (1 << 20, 0)][seed]
    got = job_tables(spark, files, tmp_path / "out", range_bytes, parts)
    assert_same(got, tables_of(files, tmp_path))


@pytest.mark.parametrize("range_bytes", [3000, 1 << 20])
def test_directions_in_two_files(spark: SparkSession, range_bytes: int, tmp_path: Path) -> None:
    files = parts_of_demo(tmp_path, lambda port, to_port: int(port < to_port))
    got = job_tables(spark, files, tmp_path / "out", range_bytes)
    assert_same(got, tables_of(files, tmp_path))


def test_a_folder_with_a_connection_over_three_files(spark: SparkSession, tmp_path: Path) -> None:
    packets = crossing()
    folder = tmp_path / "captures"
    folder.mkdir()
    files = [
        write(folder / "c.pcap", packets[:20]),
        write(folder / "a.pcapng", packets[20:45]),
        str(folder / "b.pcap.gz"),
    ]
    Path(files[2]).write_bytes(gzip.compress(pcapng_file(packets[45:])))
    got = job_tables(spark, [str(folder)], tmp_path / "out", 500)
    assert_same(got, tables_of(files, tmp_path))


def test_damage_is_reported_and_the_job_continues(spark: SparkSession, tmp_path: Path) -> None:
    packets = crossing()
    path = tmp_path / "b.pcap"
    files = [
        write(tmp_path / "a.pcap", packets[:20]),
        write(path, packets[20:50]),
        write(tmp_path / "c.pcap", packets[50:]),
    ]
    data = bytearray(path.read_bytes())
    broken = record_starts(path)[10]
    data[broken + 8 : broken + 12] = b"\xff\xff\xff\x7f"
    path.write_bytes(data)
    none = tmp_path / "none.pcap"
    none.write_bytes(b"nothing that is a capture")
    got = job_tables(spark, [*files, str(none)], tmp_path / "out", 700)
    assert_same(got, tables_of(files, tmp_path))
    problems = [row for row in got["problems"].to_pylist() if row["kind"] == "file"]
    assert {(row["capture"], row["position"]) for row in problems} == {
        (str(path), broken),
        (str(none), None),
    }


class TransferCounts:
    """Counts rows collected by the driver, and shuffled bytes."""

    def __init__(self, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
        self._context = spark.sparkContext
        self.rows = 0
        collect = RDD.collect

        def counted(reports: RDD[Any]) -> list[Any]:
            rows = collect(reports)
            self.rows += len(rows)
            return rows

        monkeypatch.setattr(RDD, "collect", counted)
        for other in ("toLocalIterator", "take", "foreach", "saveAsPickleFile"):
            monkeypatch.setattr(RDD, other, None)
        for other in ("collect", "toPandas", "toArrow", "toLocalIterator", "take"):
            monkeypatch.setattr(type(spark.range(1)), other, None)
        self._stages = self._next_stage()

    def _next_stage(self) -> int:
        java: Any = self._context._jsc.sc()
        java.listenerBus().waitUntilEmpty(600_000)
        return int(java.dagScheduler().nextStageId())

    def shuffled_bytes(self) -> int:
        """Return the number of bytes shuffled since the start."""
        end = self._next_stage()
        store: Any = self._context._jsc.sc().statusStore()
        total = 0
        for stage in range(self._stages, end):
            try:
                total += store.lastStageAttempt(stage).shuffleWriteBytes()
            except Py4JJavaError:  # skipped, as its result existed
                continue
        return total


def test_rows_and_payload_do_not_reach_the_driver(spark: SparkSession, tmp_path: Path) -> None:
    """Data collected by the driver, and shuffled, does not grow with the capture."""
    found = []
    for rounds in (10, 300):
        wire = Wire()
        connection = wire.connect().syn()
        for number in range(rounds):
            connection.client(heartbeat(number, group_instance_id="i" * 1400)).broker(beat(number))
        third = len(wire.packets) // 3
        bounds = [0, third, 2 * third, len(wire.packets)]
        files = [
            write(tmp_path / f"{rounds}-{n}.pcap", wire.packets[a:b])
            for n, (a, b) in enumerate(pairwise(bounds))
        ]
        with pytest.MonkeyPatch.context() as patch:
            counting = TransferCounts(spark, patch)
            request = Request(files, str(tmp_path / str(rounds)), FEW, parts=2)
            counts = make_tables(spark, request).rows
        assert counts["exchanges"] == rounds
        size = sum(Path(file).stat().st_size for file in files)
        found.append((counting.rows, counting.shuffled_bytes(), size))
    (rows, shuffled, _), (more_rows, more_shuffled, size) = found
    assert 0 < more_rows == rows < 30
    assert 0 < more_shuffled < 1.2 * shuffled
    assert more_shuffled < size // 20


def test_tables_are_replaced_only_on_request(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    captures = [str(CAPTURES / "kafka4-denied.pcap")]
    counts = make_tables(spark, Request(captures, str(out), FEW)).rows
    assert counts == {"exchanges": read(spark, str(out), "exchanges").count()}
    with pytest.raises(UsageError, match="--overwrite"):
        make_tables(spark, Request(captures, str(out), FEW))
    make_tables(spark, Request(captures, str(out), FEW, overwrite=True))
    assert counts["exchanges"] == read(spark, str(out), "exchanges").count()
    assert read(spark, str(out), "records").count() == 0
    for name, said in (("*.none", "no captures"), ("none.pcap", "no such file")):
        with pytest.raises(DissectorError, match=said):
            make_tables(spark, Request([str(tmp_path / name)], str(out), FEW, overwrite=True))
    assert counts["exchanges"] == read(spark, str(out), "exchanges").count()


def test_queries_skip_folders_of_other_days_and_rows_of_other_apis(
    spark: SparkSession, tmp_path: Path
) -> None:
    job_tables(spark, [str(CAPTURES / "demo.pcap")], tmp_path / "out", 1 << 20)
    views(spark, str(tmp_path / "out"))
    rows = spark.sql("SELECT api FROM exchanges WHERE api = 'Fetch' AND date > '2020-01-01'")
    assert rows.count() > 10
    plan = rows._jdf.queryExecution().executedPlan().toString()  # type: ignore[operator]
    assert "PartitionFilters: [isnotnull(date" in plan
    assert "EqualTo(api,Fetch)" in plan
    row = spark.sql("SELECT request_time, request_time_ns FROM exchanges LIMIT 1").first()
    assert row is not None
    assert int(row[0].timestamp()) == row[1] // 10**9


def test_summaries_agree_with_the_rows(spark: SparkSession, tmp_path: Path) -> None:
    got = job_tables(spark, [str(CAPTURES / "demo.pcap")], tmp_path / "out", 20_000)
    made_of = make_summaries(spark, str(tmp_path / "out"))
    exchanges = got["exchanges"].to_pylist()
    times = [row.asDict() for row in made_of["response_times"].collect()]
    for by in ("api", "client_id", "client", "broker"):
        assert sum(row["count"] for row in times if row["by"] == by) == len(exchanges)
    fetches = [row for row in exchanges if row["api"] == "Fetch"]
    of_fetch = [row for row in times if row["by"] == "api" and row["name"] == "Fetch"]
    assert max(row["max_ms"] for row in of_fetch) == max(row["latency_ms"] or 0 for row in fetches)
    assert sum(row["errors"] for row in of_fetch) == sum(bool(row["errors"]) for row in fetches)
    topic = fetches[-1]["topics"][0]
    users = [row for row in made_of["topic_users"].collect() if row["topic"] == topic]
    assert sum(row["count"] for row in users) == sum(topic in row["topics"] for row in exchanges)
    assert any(row["software_name"] for row in users)
    talkers = [row["bytes"] for row in made_of["talkers"].collect()]
    assert talkers == sorted(talkers, reverse=True)
    assert sum(talkers) == sum(
        (row["request_bytes"] or 0) + (row["response_bytes"] or 0) for row in exchanges
    )
    said = sum(len(row["errors"]) for row in exchanges)
    assert sum(row["count"] for row in made_of["errors"].collect()) == said
    rates = made_of["throughput"].collect()
    assert sum(row["count"] for row in rates) == len(exchanges)
    assert rates[0]["exchanges_per_s"] == rates[0]["count"] / 60
