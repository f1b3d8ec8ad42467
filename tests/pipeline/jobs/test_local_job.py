"""Tables equal those of the commands for any division of a collection."""

from __future__ import annotations

import gzip
import json
import random
from itertools import pairwise
from pathlib import Path

import pytest

from dissector.values.value_settings import ValueSettings
from pipeline.jobs.local_job import dissect, dissect_ranges, plan_ranges
from pipeline.split.byte_ranges import Range, ranges_of
from pipeline.split.collection import Collection
from pipeline.tables.decoded_columns import with_absolute_paths
from pipeline.tables.table_builder import TableOptions
from pipeline.tables.table_schemas import SCHEMAS
from tests.corpus import fast_and_long
from tests.dissector.capture.test_prefaces import ANSWER, HEAD, capture
from tests.dissector.engine.reading.test_capture import beat, crossing, heartbeat
from tests.dissector.values.value_captures import ENTRIES, write_values
from tests.pipeline.command_tables import assert_same, tables_of
from tests.pipeline.split_captures import delayed, imperfect_packets, record_starts
from tests.tcp_captures import STEP_NS, Packet, Wire, pcapng_file, write

ALL = TableOptions(tables=frozenset(SCHEMAS))
FEW = TableOptions(tables=frozenset(("connections", "exchanges")))
CAPTURES = Path(__file__).parents[3] / "captures"


def divided(path: str, *cuts: int) -> list[Range]:
    """Return the ranges of a file divided at these bytes."""
    bounds = [24, *cuts, None]
    return [
        Range(number, path, start or 0, end, proven=number == 0)
        for number, (start, end) in enumerate(pairwise(bounds))
    ]


@pytest.mark.long
def test_a_file_may_be_divided_at_any_byte(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    name = write(path, crossing())
    expected = {
        table: rows for table, rows in tables_of([name], tmp_path).items() if table in FEW.tables
    }
    starts = record_starts(path)
    some = starts[len(starts) // 2]
    # Every byte of a packet and of the next header, and the last ones of the file.
    around = [*range(some, starts[starts.index(some) + 1] + 17, 3)]
    size = path.stat().st_size
    for cut in [25, 39, 40, 41, *around, *range(size - 20, size, 3)]:
        assert_same(dissect_ranges(divided(name, cut), FEW, parts=2), expected)


@pytest.mark.long
def test_every_packet_may_be_its_own_range(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    name = write(path, crossing())
    ranges = divided(name, *record_starts(path)[1:])
    assert_same(dissect_ranges(ranges, ALL, parts=3), tables_of([name], tmp_path))


@pytest.mark.parametrize("seed", fast_and_long([0, 1], [2, 3, 4, 5]))
def test_connections_across_ranges_are_read_again_without_parts(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    name = write(path, imperfect_packets(seed))
    starts = record_starts(path)
    ranges = divided(name, *starts[20::40])
    assert len(plan_ranges(ranges).crossing) > 3
    got = dissect_ranges(ranges, ALL, parts=0)
    shards = dissect_ranges(ranges, ALL, parts=2)
    assert_same(got, {table: rows.to_pylist() for table, rows in shards.items()})
    assert_same(got, tables_of([name], tmp_path))


def test_values_are_decoded_as_in_one_process(tmp_path: Path) -> None:
    path = write_values(tmp_path / "a.pcap")
    dump = tmp_path / "registry.json"
    dump.write_text(json.dumps(ENTRIES))
    settings = ValueSettings((str(dump),), ("others=json",))
    expected = tables_of([path], tmp_path, "--values", str(dump), "--value-format", "others=json")
    starts = record_starts(path)
    ranges = divided(str(path), starts[len(starts) // 2])
    options = TableOptions(tables=frozenset(("records",)), values=with_absolute_paths(settings))
    got = dissect_ranges(ranges, options, parts=2)
    assert_same(got, {"records": expected["records"]})
    decoded = got["records"]["value_decoded"]
    assert len(decoded) - decoded.null_count > 200


def test_the_client_before_a_proxy_is_known_in_any_division(tmp_path: Path) -> None:
    name = capture(tmp_path / "a.pcap", HEAD, ANSWER, [5, 30])
    ranges = divided(name, *record_starts(Path(name))[1:])
    got = dissect_ranges(ranges, FEW, parts=2)
    assert set(got["exchanges"]["origin"].to_pylist()) == {"CONNECT kafka-1.example.com:9092", None}
    expected = tables_of([name], tmp_path)
    assert_same(got, {table: expected[table] for table in FEW.tables})


REAL = (
    "demo.pcap",
    "kafka39-librdkafka-transactions.pcap",
    "kafka39-kafka-python-sasl.pcap",
    "kafka4-franz-go.pcap",
    "kafka4-denied.pcap",
)


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("capture", "range_bytes"),
    fast_and_long(
        [(REAL[1], 20_000), (REAL[4], 700)],
        [
            *((name, 20_000) for name in REAL if name != REAL[1]),
            *((name, 700) for name in REAL[:4]),
        ],
    ),
)
def test_captures_of_real_clients(capture: str, range_bytes: int, tmp_path: Path) -> None:
    files = [str(CAPTURES / capture)]
    got = dissect(files, ALL, range_bytes=range_bytes, parts=3)
    assert got["exchanges"].num_rows > 10
    assert_same(got, tables_of(files, tmp_path))


# Seeds 2, 3, 4, 6 and 8 have some 400 ranges of 150 bytes each.
@pytest.mark.long
@pytest.mark.parametrize("seed", fast_and_long([0, 1, 7], [2, 3, 4, 5, 6, 8, 9, 10, 11]))
def test_lost_repeated_and_late_packets(seed: int, tmp_path: Path) -> None:
    order = random.Random(seed)
    packets = imperfect_packets(seed)
    cuts = sorted(order.sample(range(1, len(packets)), seed % 4))
    parts = [packets[a:b] for a, b in pairwise([0, *cuts, len(packets)])]
    files = [write(tmp_path / f"{n}.pcap", part) for n, part in enumerate(parts)]
    got = dissect(files, ALL, range_bytes=order.choice([150, 2000, 1 << 20]), parts=1 + seed % 3)
    assert_same(got, tables_of(files, tmp_path))


@pytest.mark.long
def test_a_connection_over_three_files_of_different_kinds(tmp_path: Path) -> None:
    packets = crossing()
    first, second, third = packets[:20], packets[20:45], packets[45:]
    # The order by name would differ.
    files = [write(tmp_path / "c.pcap", first), write(tmp_path / "a.pcapng", second)]
    files.append(str(tmp_path / "b.pcap.gz"))
    Path(files[2]).write_bytes(gzip.compress(pcapng_file(third)))
    got = dissect([str(tmp_path / "[abc].pcap*")], ALL, range_bytes=500)
    assert_same(got, tables_of(files, tmp_path))
    assert set(got["exchanges"]["capture"].to_pylist()) == set(files)


@pytest.mark.long
def test_rows_of_overlapping_captures_are_unique(tmp_path: Path) -> None:
    packets = crossing()
    files = [write(tmp_path / "a.pcap", packets[:50]), write(tmp_path / "b.pcap", packets[30:])]
    got = dissect(files, ALL, range_bytes=900)
    assert_same(got, tables_of(files, tmp_path))
    whole = dissect([write(tmp_path / "whole.pcap", packets)], FEW)
    columns = ["request_time_ns", "response_time_ns", "correlation_id", "status"]
    assert got["exchanges"].select(columns).sort_by("request_time_ns") == (
        whole["exchanges"].select(columns).sort_by("request_time_ns")
    )
    assert sum(got["connections"]["retransmitted_a"].to_pylist()) > 0


def test_damage_costs_the_rest_of_its_file_and_is_reported(tmp_path: Path) -> None:
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
    expected = tables_of(files, tmp_path)
    none = tmp_path / "none.pcap"
    none.write_bytes(b"nothing that is a capture")
    for range_bytes in (700, 1 << 20):
        got = dissect([*files, str(none)], ALL, range_bytes=range_bytes)
        assert_same(got, expected)
        problems = [row for row in got["problems"].to_pylist() if row["kind"] == "file"]
        assert {(row["capture"], row["position"]) for row in problems} == {
            (str(path), broken),
            (str(none), None),
        }


@pytest.mark.long
def test_a_truncated_file(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    write(path, crossing())
    path.write_bytes(path.read_bytes()[:-3])
    last = record_starts(path)[-1]
    for range_bytes in (1000, 1 << 20):
        got = dissect([str(path)], ALL, range_bytes=range_bytes)
        assert_same(got, tables_of([path], tmp_path))
        assert [(row["position"], row["kind"]) for row in got["problems"].to_pylist()] == [
            (last, "file")
        ]


@pytest.mark.long
def test_concurrent_processes(tmp_path: Path) -> None:
    files = [
        write(tmp_path / "a.pcap", imperfect_packets(1)),
        write(tmp_path / "b.pcap", delayed(imperfect_packets(2), 900)),
    ]
    got = dissect(files, ALL, range_bytes=5000, processes=2)
    assert_same(got, tables_of(files, tmp_path))


def test_connections_within_a_range_are_not_shuffled(tmp_path: Path) -> None:
    connections = [[each for each in crossing() if each.connection == number] for number in (0, 1)]
    parts = [connections[0], delayed(connections[1], 1000), delayed(connections[0], 2000)]
    files = [write(tmp_path / f"{number}.pcap", part) for number, part in enumerate(parts)]
    plan = plan_ranges(ranges_of(Collection.of(files)))
    firsts = [0, len(connections[0]), len(connections[0]) + len(connections[1])]
    assert [each.first_packet for each in plan.ranges] == firsts
    # The first and the third file hold the same connection.
    assert len(plan.crossing) == 1
    assert len(plan_ranges(ranges_of(Collection.of(files[:2]))).crossing) == 0


@pytest.mark.long
@pytest.mark.parametrize("size", fast_and_long([700, 1 << 20], [100]))
def test_a_closed_connection_waiting_for_missing_packets(size: int, tmp_path: Path) -> None:
    """Time advances only by packets of other connections."""
    wire = Wire()
    connection = wire.connect(50000).syn()
    connection.client(heartbeat(1)).client(heartbeat(2)).broker(beat(1)).fin()
    lost = wire.packets.index(next(each for each in wire.packets if each.payload))
    del wire.packets[lost]
    other = wire.connect(50001)
    for number in range(100):
        other.client(heartbeat(number))
    name = write(tmp_path / "a.pcap", wire.packets)
    expected = tables_of([name], tmp_path)
    assert [row["ended"] for row in expected["connections"]] == ["fin", None]
    assert_same(dissect([name], ALL, range_bytes=size), expected)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_clocks_ahead_of_others(seed: int, tmp_path: Path) -> None:
    """Lateness depends on the latest time of any clock in the collection."""
    order = random.Random(seed)
    wire = Wire()
    packets: list[Packet] = []
    for number in range(12):
        connection = wire.connect(50000 + number).syn()
        connection.client(heartbeat(1)).client(heartbeat(2)).broker(beat(1)).broker(beat(2)).fin()
        mine = [each for each in wire.packets if each.connection == number]
        lost = order.choice([each for each in mine if each.payload])
        mine.remove(lost)
        ahead = wire.connect(60000 + number).client(heartbeat(1)).wire.packets[-1]
        steps = order.choice([-70, 10, 60, 90, 5000])
        mine += [*delayed([ahead], steps), lost, *delayed([lost], order.choice([1, 100]))]
        packets += mine
        wire.now_ns += 200 * STEP_NS
    name = write(tmp_path / "a.pcap", packets)
    expected = tables_of([name], tmp_path)
    late = sum(row["late_bytes_a"] + row["late_bytes_b"] for row in expected["connections"])
    assert late > 0
    for size in (100, 300, 1 << 20):
        assert_same(dissect([name], ALL, range_bytes=size, parts=3), expected)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("range_bytes", [700, 1 << 20])
def test_files_of_another_file_system(range_bytes: int, tmp_path: Path) -> None:
    name = write(tmp_path / "a.pcap", imperfect_packets(4, rounds=3))
    here = dissect([name], ALL, range_bytes=range_bytes)
    there = dissect([f"file://{name}"], ALL, range_bytes=range_bytes)
    for table, rows in here.items():
        named = str(there[table].to_pylist()).replace("file://", "")
        assert sorted(named) == sorted(str(rows.to_pylist()))
        assert ("file://" in str(there[table].to_pylist())) == ("capture" in SCHEMAS[table].names)
