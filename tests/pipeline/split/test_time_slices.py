"""Slices of files that overlap in time: together the packets of the files, in the same order."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dissector.capture.columns import Packets
from dissector.capture.formats.capture_reader import read_packets
from dissector.errors import Problem
from pipeline.jobs.job import unread_files
from pipeline.jobs.local_job import Plan, dissect, plan_ranges
from pipeline.split import time_marks
from pipeline.split.byte_ranges import Range, RangeScan, numbered_ranges, ranges_of
from pipeline.split.collection import Collection, File
from pipeline.split.segment_sources import RangeSource
from pipeline.split.slice_reader import reader_of
from pipeline.split.time_slices import slices_among, with_slices
from pipeline.tables.table_builder import TableOptions
from tests.pipeline.split_captures import delayed, imperfect_packets, parts_of_demo, record_starts
from tests.tcp_captures import write


def two_files(folder: Path) -> list[str]:
    return parts_of_demo(folder, lambda port, to_port: int(port < to_port))


def plan_of(files: Sequence[str], range_bytes: int) -> Plan:
    return plan_ranges(ranges_of(Collection.of(files), range_bytes))


def packet_rows(windows: Sequence[Packets], names: Sequence[str]) -> list[tuple[object, ...]]:
    return [
        (window.first + row, int(window.time_ns[row]), names[window.file[row]])
        for window in windows
        for row in range(len(window))
    ]


@pytest.mark.thinned(5)
@pytest.mark.parametrize(
    ("range_bytes", "mark_bytes"),
    [(5000, 1 << 20), (9000, 1), (9000, 1500), (1 << 20, 1), (1 << 20, 1 << 20)],
)
def test_slices_have_the_packets_of_the_files_in_order(
    range_bytes: int, mark_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time_marks, "MARK_BYTES", mark_bytes)
    files = two_files(tmp_path)
    plan = plan_of(files, range_bytes)
    assert [each.number for each in plan.ranges] == list(range(len(plan.ranges)))
    got = []
    for each in plan.ranges:
        got += packet_rows(list(reader_of(each).windows()), each.paths)
    assert got == packet_rows(list(read_packets(files)), files)
    slices = slices_among(plan.ranges)
    assert len(slices) <= len(ranges_of(Collection.of(files), range_bytes))
    if mark_bytes < 1 << 20 or range_bytes < 1 << 20:
        assert len(slices) > 1
    if mark_bytes == 1:
        begins = [member.byte_range.start for each in slices for member in each.time_slice.members]
        assert len(set(begins)) > len(slices)


def test_only_files_that_overlap_are_sliced(tmp_path: Path) -> None:
    packets = imperfect_packets(1)
    half = len(packets) // 2
    files = [
        write(tmp_path / "a.pcap", packets[:half]),
        write(tmp_path / "b.pcap", packets[half:]),
        write(tmp_path / "c.pcap", delayed(packets, 5000)),
        write(tmp_path / "d.pcap", delayed(packets, 5001)),
        write(tmp_path / "e.pcap", delayed(packets, 20_000)),
    ]
    apart = plan_of([*files[:2], files[4]], 1 << 20)
    assert [each.path for each in apart.ranges] == [*files[:2], files[4]]
    assert not slices_among(apart.ranges)
    plan = plan_of(files, 1 << 20)
    assert [each.paths for each in plan.ranges if not each.is_empty] == [
        (files[0],),
        (files[1],),
        (files[2], files[3]),
        (files[4],),
    ]
    count = len(packets)
    firsts = [each.first_packet for each in plan.ranges if not each.is_empty]
    assert firsts == [0, half, count, 3 * count]


def planned(files: Sequence[tuple[int, int]], megabytes: int, divisible: bool) -> list[Range]:
    """Return the slices of files with begins and ends, a megabyte of each in equal times."""
    size = megabytes << 20
    names = [f"{number:03d}" for number in range(len(files))]
    both = zip(names, files, strict=True)
    found = [File(name, size, begin_ns, divisible) for name, (begin_ns, _) in both]
    ranges = ranges_of(Collection.ordered(found), 1 << 40)
    scans = {}
    for each in ranges:
        begin_ns, end_ns = files[int(each.path)]
        steps = np.arange(megabytes + 1)
        times = begin_ns + (end_ns - begin_ns) * steps // megabytes
        marks = np.stack([24 + (steps << 20), 10 * steps, times], axis=1)
        packets = 10 * megabytes
        scans[each.number] = RangeScan(
            each.number, 0, 0, packets, damaged=False, marks=marks.tobytes()
        )
    return slices_among(with_slices(ranges, scans))


def bytes_to_read(slices: Sequence[Range], begins: dict[str, tuple[int, int]], size: int) -> int:
    total = 0
    for each in slices:
        assert each.time_slice is not None
        for member in each.time_slice.members:
            begin_ns, end_ns = begins[member.byte_range.path]
            stop_ns = end_ns if each.time_slice.end_ns is None else each.time_slice.end_ns
            share = (min(stop_ns, end_ns) - begin_ns) / (end_ns - begin_ns)
            total += int(share * size) - member.byte_range.start
    return total


@pytest.mark.parametrize("shift", [0, 40])
def test_compressed_files_are_not_read_much_more_than_once(shift: int) -> None:
    """Three hosts, each with files of 100 s, one after another."""
    files = [
        (at * 1000 + host * shift, at * 1000 + host * shift + 1001)
        for at in range(20)
        for host in range(3)
    ]
    slices = planned(files, 100, divisible=False)
    assert 10 <= len(slices) <= 60
    begins = {f"{number:03d}": each for number, each in enumerate(files)}
    assert bytes_to_read(slices, begins, 100 << 20) < 1.3 * 60 * (100 << 20)
    divided = planned(files, 100, divisible=True)
    assert 30 <= len(divided) <= 60
    assert bytes_to_read(divided, begins, 100 << 20) < 1.1 * 60 * (100 << 20)


def test_one_long_compressed_file_among_short_ones_is_not_read_for_each() -> None:
    files = [(0, 100_000), *((at * 1000 + 1, at * 1000 + 900) for at in range(100))]
    slices = planned(files, 100, divisible=False)
    # The long file has a hundredth of all bytes.
    assert 30 <= len(slices) <= 101


@pytest.mark.parametrize("wrong_ns", [2**63 - 1, 2**62, 0])
def test_any_times_give_the_packets_in_order(wrong_ns: int, tmp_path: Path) -> None:
    packets = imperfect_packets(1)
    wrong = [replace(each, time_ns=wrong_ns) for each in packets[50:52]]
    files = [
        write(tmp_path / "a.pcapng", [*packets[:90:2], *wrong, *packets[90::2]]),
        write(tmp_path / "b.pcap", packets[1::2]),
    ]
    plan = plan_of(files, 3000)
    assert slices_among(plan.ranges)
    got = []
    for each in plan.ranges:
        got += packet_rows(list(reader_of(each).windows()), each.paths)
    assert got == packet_rows(list(read_packets(files)), files)


@pytest.mark.long
def test_damage_is_reported_once(tmp_path: Path) -> None:
    files = two_files(tmp_path)
    path = Path(files[0])
    data = bytearray(path.read_bytes())
    starts = record_starts(path)
    middle = starts[len(starts) // 2]
    data[middle + 8 : middle + 12] = b"\xff\xff\xff\x7f"
    path.write_bytes(data[:-3])
    options = TableOptions(tables=frozenset(("problems",)))
    found = []
    for range_bytes in (3000, 1 << 20):
        assert len(slices_among(plan_of(files, range_bytes).ranges)) >= (range_bytes == 3000) * 3
        rows = dissect(files, options, range_bytes=range_bytes)["problems"].to_pylist()
        found.append(
            sorted((row["capture"], row["position"]) for row in rows if row["kind"] == "file")
        )
    assert found[0] == found[1] == [(files[0], middle), (files[0], starts[-1])]


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    files = two_files(tmp_path)
    ranges = plan_of(files, 9000).ranges
    Path(files[1]).unlink()
    reasons = {}
    for each in ranges:
        source = RangeSource(each, np.zeros(0, np.int64), 1)
        assert list(source.windows()) or each.is_empty
        reasons[each.number] = source.unread
    found = unread_files(ranges, reasons)
    assert list(found) == [files[1]]
    assert found[files[1]].startswith(f"{files[1]}: no such file")


def test_packets_that_were_not_counted_are_not_read(tmp_path: Path) -> None:
    """Else later packets would get numbers of others."""
    files = two_files(tmp_path)
    (whole,) = slices_among(plan_of(files, 1 << 20).ranges)
    reader = reader_of(whole)
    count = sum(len(window) for window in reader.windows())
    first, second = reader.scan.members
    failed = replace(second, packets=7, end=500, problem="input/output error")
    scan = replace(reader.scan, packets=first.packets + 7, members=(first, failed))
    (limited,) = numbered_ranges([whole], {whole.number: scan})
    again = reader_of(limited)
    windows = list(again.windows())
    assert sum(map(len, windows)) == first.packets + 7 < count
    problems = [each for window in windows for each in window.problems]
    assert problems == [(whole.paths[1], Problem("input/output error", position=500))]


@pytest.mark.long
def test_compressed_files_may_be_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time_marks, "MARK_BYTES", 500)
    files = two_files(tmp_path)
    path = Path(files[0])
    path.write_bytes(gzip.compress(path.read_bytes()))
    plan = plan_of(files, 1000)
    assert len(slices_among(plan.ranges)) > 1
    got = []
    for each in plan.ranges:
        got += packet_rows(list(reader_of(each).windows()), each.paths)
    assert got == packet_rows(list(read_packets(files)), files)
