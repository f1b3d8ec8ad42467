"""Fragments of datagrams across ranges."""

from __future__ import annotations

import random
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from pipeline.jobs.local_job import dissect, dissect_ranges, plan_ranges
from pipeline.split.byte_ranges import ranges_of
from pipeline.split.collection import Collection
from pipeline.tables.table_builder import TableOptions
from pipeline.tables.table_schemas import SCHEMAS
from tests.corpus import fast_and_long
from tests.dissector.engine.reading.test_capture import crossing
from tests.pipeline.command_tables import assert_same, tables_of
from tests.pipeline.jobs.test_local_job import divided
from tests.pipeline.split_captures import imperfect_packets, record_starts
from tests.tcp_captures import Packet, retimed, write

ALL = TableOptions(tables=frozenset(SCHEMAS))


def fragmented(order: random.Random, packets: list[Packet]) -> list[Packet]:
    """Return packets, some fragmented and sometimes reordered."""
    out: list[Packet] = []
    for number, packet in enumerate(packets):
        if packet.data[12:14] != b"\x08\x00" or packet.snap or order.random() < 0.5:
            out.append(packet)
            continue
        ethernet, header, rest = packet.data[:14], packet.data[14:34], packet.data[34:]
        size = order.choice([8, 24, 200])
        pieces = []
        for at in range(0, len(rest), size):
            more = 0x2000 if at + size < len(rest) else 0
            part = rest[at : at + size]
            head = bytearray(header)
            struct.pack_into(">HHH", head, 2, 20 + len(part), number, more | at // 8)
            pieces.append(replace(packet, data=ethernet + head + part))
        if order.random() < 0.3:
            order.shuffle(pieces)
        if order.random() < 0.1:
            pieces.pop()
        for piece in pieces:
            at = len(out) - order.choice([0, 0, 0, 1, 5])
            out.insert(max(at, 0), piece)
    return retimed(out)


@pytest.mark.long
@pytest.mark.parametrize("seed", fast_and_long([2], [0, 1, 3, 4, 5]))
def test_each_packet_may_be_its_own_range(seed: int, tmp_path: Path) -> None:
    order = random.Random(seed)
    path = tmp_path / "a.pcap"
    name = write(path, fragmented(order, imperfect_packets(seed, connections=2, rounds=4)))
    starts = record_starts(path)[1:]
    cuts = starts if seed % 2 else sorted(order.sample(starts, 20))
    ranges = divided(name, *cuts)
    assert any(each.reassembled for each in plan_ranges(ranges).ranges)
    assert_same(dissect_ranges(ranges, ALL, parts=2), tables_of([name], tmp_path))


def test_a_connection_with_only_a_fragmented_segment_in_a_range(tmp_path: Path) -> None:
    packets = fragmented(random.Random(5), [each for each in crossing() if each.connection == 0])
    whole = write(tmp_path / "whole.pcap", packets)
    last = max(n for n, each in enumerate(packets) if struct.unpack_from(">H", each.data, 20)[0])
    files = [
        write(tmp_path / "a.pcap", packets[:last]),
        write(tmp_path / "b.pcap", packets[last : last + 1]),
    ]
    plan = plan_ranges(ranges_of(Collection.of(files)))
    assert [bool(each.reassembled) for each in plan.ranges] == [False, True]
    assert len(plan.crossing) == 1
    assert_same(dissect(files, ALL), tables_of(files, tmp_path))
    assert dissect([whole], ALL)["exchanges"].num_rows > 5


def test_without_fragments_no_packets_are_set_aside(tmp_path: Path) -> None:
    file = write(tmp_path / "a.pcap", crossing())
    plan = plan_ranges(ranges_of(Collection.of([file]), 500))
    assert len(plan.ranges) > 5
    assert not any(each.reassembled for each in plan.ranges)
