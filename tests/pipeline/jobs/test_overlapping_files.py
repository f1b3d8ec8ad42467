"""Files that overlap in time are merged: the rows of the commands, whatever the division."""

from __future__ import annotations

import gzip
import random
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.jobs.local_job import dissect, plan_ranges
from pipeline.split.byte_ranges import ranges_of
from pipeline.split.collection import Collection
from pipeline.split.time_slices import slices_among
from pipeline.tables.table_builder import TableOptions
from pipeline.tables.table_schemas import SCHEMAS
from tests.corpus import fast_and_long
from tests.pipeline.command_tables import assert_same, tables_of
from tests.pipeline.split.test_split_fragments import fragmented
from tests.pipeline.split_captures import imperfect_packets, parts_of_demo
from tests.tcp_captures import STEP_NS, Packet, write

ALL = TableOptions(tables=frozenset(SCHEMAS))


def slice_count(files: list[str], range_bytes: int) -> int:
    return len(slices_among(plan_ranges(ranges_of(Collection.of(files), range_bytes)).ranges))


@pytest.mark.long
@pytest.mark.parametrize(("range_bytes", "slices"), fast_and_long([(1 << 20, 1)], [(12_000, 5)]))
def test_directions_in_two_files(range_bytes: int, slices: int, tmp_path: Path) -> None:
    files = parts_of_demo(tmp_path, lambda port, to_port: int(port < to_port))
    got = dissect(files, ALL, range_bytes=range_bytes, parts=3)
    assert got["exchanges"]["status"].to_pylist().count("answered") == 270
    assert_same(got, tables_of(files, tmp_path))
    assert slice_count(files, range_bytes) >= slices


@pytest.mark.long
def test_three_hosts_at_once(tmp_path: Path) -> None:
    files = parts_of_demo(tmp_path, lambda port, to_port: (port + to_port) % 3)
    assert len(files) == 3
    assert slice_count(files, 12_000) > 5
    got = dissect(files, ALL, range_bytes=12_000, parts=2)
    assert_same(got, tables_of(files, tmp_path))


def scattered(seed: int, folder: Path) -> list[str]:
    """
    Write files with packets at random, some in two files, some with times that go back.

    Files begin and end at any time, have different formats, and one of some is damaged.
    """
    order = random.Random(seed)
    packets = fragmented(order, imperfect_packets(seed, rounds=8))
    count = order.choice([2, 3, 5])
    spans = [sorted(order.sample(range(len(packets) + 1), 2)) for _ in range(count - 1)]
    files: list[list[Packet]] = [[] for _ in range(count)]
    turn = 0
    for place, packet in enumerate(packets):
        takers = [0, *(n for n, (a, b) in enumerate(spans, 1) if a <= place < b)]
        turn = turn if order.random() < 0.4 else order.randrange(count)
        back = order.choice([0] * 9 + [3, 40]) * STEP_NS
        packet = replace(packet, time_ns=packet.time_ns - back)
        for number in {takers[turn % len(takers)], order.choice(takers)}:
            files[number].append(packet)
    names = []
    for number, mine in enumerate(each for each in files if each):
        path = folder / f"{order.random()}-{number}.{order.choice(['pcap', 'pcap', 'pcapng'])}"
        write(path, mine)
        data = path.read_bytes()
        if order.random() < 0.2:
            at = order.randrange(len(data) // 2, len(data))
            data = data[:at] + b"\xff" * order.choice([0, 4, 100]) + data[at + 100 :]
        path.write_bytes(gzip.compress(data) if order.random() < 0.3 else data)
        names.append(str(path))
    return names


# Of seed 18 events depend on the windows, also in one file of the same packets.
@pytest.mark.thinned(2)
@pytest.mark.parametrize("seed", fast_and_long(range(2), [*range(2, 18), *range(19, 24)]))
def test_any_files_at_once(seed: int, tmp_path: Path) -> None:
    files = scattered(seed, tmp_path)
    order = random.Random(seed)
    range_bytes, parts = order.choice([500, 3000, 1 << 20]), order.choice([1, 3])
    got = dissect(files, ALL, range_bytes=range_bytes, parts=parts)
    assert_same(got, tables_of(files, tmp_path))
