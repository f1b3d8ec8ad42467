"""An unreadable byte costs the rest of its range, and is a problem with its position."""

from __future__ import annotations

import errno
import io
import os
from bisect import bisect
from dataclasses import replace
from pathlib import Path
from socket import gethostname
from typing import Any

import pytest

from dissector.errors import Problem
from pipeline.jobs.local_job import dissect, plan_ranges
from pipeline.split.byte_ranges import START_UNKNOWN, Range, ranges_of, unreadable
from pipeline.split.collection import Collection
from pipeline.split.connection_index import index_range
from pipeline.split.range_reader import RangeReader
from pipeline.storage.filesystems import MIN_READ_BYTES, ReadablePrefix, open_file
from pipeline.tables.table_builder import TableOptions
from pipeline.tables.table_schemas import SCHEMAS
from tests.pipeline.command_tables import assert_same, tables_of
from tests.pipeline.split_captures import imperfect_packets, record_starts
from tests.tcp_captures import Packet, write

ALL = TableOptions(tables=frozenset(SCHEMAS))
RANGE_BYTES = 40_000


def bad_disk(begin: int, end: int, *, coarse: bool = False) -> type[io.FileIO]:
    """Return files with unreadable bytes; with `coarse`, any read that includes them fails."""

    class File(io.FileIO):
        def readinto(self, buffer: Any) -> int:
            at = self.tell()
            if at + len(buffer) > begin and at < end:
                if at >= begin or coarse:
                    raise OSError(errno.EIO, os.strerror(errno.EIO))
                buffer = memoryview(buffer)[: begin - at]
            return super().readinto(buffer)

    return File


@pytest.fixture
def capture(tmp_path: Path) -> tuple[str, list[Packet], list[int]]:
    """A capture, its packets, and their byte positions."""
    packets = imperfect_packets(3, rounds=40)
    path = tmp_path / "a.pcap"
    return write(path, packets), packets, record_starts(path)


def without(
    packets: list[Packet], begin: int, end: int, name: str, folder: Path
) -> dict[str, list[dict[str, Any]]]:
    """Return the tables of a file without the packets from `begin` to `end`."""
    folder.mkdir()
    parts = packets[:begin], packets[end:]
    files = [write(folder / f"{n}.pcap", part) for n, part in enumerate(parts) if part]
    tables = tables_of(files, folder)
    for rows in tables.values():
        for row in rows:
            for each in (row, *row.get("evidence", ())):
                if "capture" in each:
                    each["capture"] = name
    return tables


def positions_of(problems: Any) -> list[tuple[str, int | None]]:
    return [(row["problem"], row["position"]) for row in problems.to_pylist()]


@pytest.mark.thinned(2)
@pytest.mark.parametrize("coarse", [False, True])
def test_other_ranges_are_read(
    coarse: bool,
    capture: tuple[str, list[Packet], list[int]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name, packets, starts = capture
    ranges = plan_ranges(ranges_of(Collection.of([name]), RANGE_BYTES)).ranges
    assert len(ranges) > 4
    # A byte in the middle of the third range.
    bad = next(at for at in starts if at > 2.5 * RANGE_BYTES) + 20
    disk = bad_disk(bad, bad + 1, coarse=coarse)
    monkeypatch.setattr("pipeline.storage.filesystems.io.FileIO", disk)
    got = dissect([name], replace(ALL, window_bytes=1 << 20), range_bytes=RANGE_BYTES, parts=3)
    monkeypatch.undo()
    [position] = [
        at for problem, at in positions_of(got["problems"]) if problem == "input/output error"
    ]
    assert bad - MIN_READ_BYTES < position <= bad if coarse else position == bad
    # Its packet, and the rest of the range.
    first = bisect(starts, position) - 1
    expected = without(packets, first, starts.index(ranges[3].start), name, tmp_path / "b")
    assert_same(got, expected)


@pytest.mark.long
@pytest.mark.parametrize("at", [24 + 3, 24 + 20, 20_000])
def test_an_unreadable_beginning_costs_only_its_range(
    at: int,
    capture: tuple[str, list[Packet], list[int]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In the header of the first packet, in that packet, and in one read together with it."""
    name, packets, starts = capture
    ranges = plan_ranges(ranges_of(Collection.of([name]), RANGE_BYTES)).ranges
    before = write(tmp_path / "0.pcap", [replace(packets[0], time_ns=packets[0].time_ns - 1)])
    monkeypatch.setattr("pipeline.storage.filesystems.io.FileIO", bad_disk(at, at + 1, coarse=True))
    got = dissect([name], ALL, range_bytes=RANGE_BYTES, parts=3)
    found = [each.path for each in Collection.of([name, before]).files]
    monkeypatch.undo()
    [position] = [
        at for problem, at in positions_of(got["problems"]) if problem == "input/output error"
    ]
    first = bisect(starts, position) - 1
    assert_same(got, without(packets, first, starts.index(ranges[1].start), name, tmp_path / "b"))
    assert found == [before, name]


def test_an_unreadable_header_is_a_problem(
    capture: tuple[str, list[Packet], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its header the file is unknown, rather than truncated."""
    monkeypatch.setattr("pipeline.storage.filesystems.io.FileIO", bad_disk(10, 11, coarse=True))
    got = dissect([capture[0]], ALL, range_bytes=RANGE_BYTES)
    assert [problem for problem, _ in positions_of(got["problems"])] == ["input/output error"]
    assert got["exchanges"].num_rows == 0


def test_a_failed_read_before_and_on_the_last_try(
    capture: tuple[str, list[Packet], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "pipeline.storage.filesystems.io.FileIO", bad_disk(5_000, 5_001, coarse=True)
    )
    with open_file(capture[0]) as file:
        assert ReadablePrefix(file, is_last_try=False).read(20_000) == b""
        last = ReadablePrefix(file, is_last_try=True)
        assert len(last.read(20_000)) == 5_000
        assert not last.failure


def test_no_bytes_behind_a_range_are_read(
    capture: tuple[str, list[Packet], list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Except the rest of its last packet: bytes behind it may be unreadable."""
    name, _, starts = capture
    end = starts[len(starts) // 2]
    disk = bad_disk(end, 1 << 30, coarse=True)
    monkeypatch.setattr("pipeline.storage.filesystems.io.FileIO", disk)
    found = index_range(Range(0, name, 24, end)).scan
    assert (found.packets, found.problem) == (len(starts) // 2, "")


@pytest.mark.long
def test_other_formats_are_read_up_to_the_error(
    capture: tuple[str, list[Packet], list[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, packets, starts = capture
    files = [name, write(tmp_path / "b.pcap", packets[-1:])]
    lost = len(starts) // 2
    disk = bad_disk(starts[lost] + 5, 1 << 30)
    monkeypatch.setattr("pipeline.storage.filesystems.io.FileIO", disk)
    got = dissect(files[:1], ALL)
    whole = dissect(files, ALL)
    monkeypatch.undo()
    assert_same(got, without(packets, lost, len(packets), name, tmp_path / "c"))
    assert got["exchanges"].num_rows == whole["exchanges"].num_rows
    for tables in (got, whole):
        assert ("input/output error", starts[lost] + 5) in positions_of(tables["problems"])


def test_no_packet_found_behind_the_error_is_a_problem(
    capture: tuple[str, list[Packet], list[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, packets, starts = capture
    bad = starts[-4] + 20
    # The last range has too few packets for a reliable guess, as the file is truncated.
    range_bytes = starts[-2] - 5
    Path(name).write_bytes(Path(name).read_bytes()[:-1])
    disk = bad_disk(bad, bad + 1)
    monkeypatch.setattr("pipeline.storage.filesystems.io.FileIO", disk)
    got = dissect([name], ALL, range_bytes=range_bytes)
    monkeypatch.undo()
    assert_same(got, without(packets, len(packets) - 4, len(packets), name, tmp_path / "b"))
    problems = positions_of(got["problems"])
    assert ("input/output error", bad) in problems
    assert (START_UNKNOWN, range_bytes) in problems


def test_a_relative_path_means_the_file_of_the_driver(
    capture: tuple[str, list[Packet], list[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranges are read by processes in other folders."""
    path, packets, _ = capture
    monkeypatch.chdir(tmp_path)
    for range_bytes in (RANGE_BYTES, 1 << 30):
        ranges = ranges_of(Collection.of([Path(path).name]), range_bytes)
        (tmp_path / "other").mkdir(exist_ok=True)
        with monkeypatch.context() as patch:
            patch.chdir(tmp_path / "other")
            scans = [index_range(each).scan for each in ranges]
        assert sum(each.packets for each in scans) == len(packets)
        assert {each.path for each in ranges} == {"a.pcap"}


def test_a_range_without_a_readable_packet_tells_why(
    capture: tuple[str, list[Packet], list[int]],
) -> None:
    path = capture[0]
    (whole,) = ranges_of(Collection.of([path]))
    for each, reason in (
        (whole, ""),
        (replace(whole, path=f"{path}.none"), f"{path}.none: no such file (on {gethostname()})"),
        (unreadable(whole, Problem("not a capture: text")), f"{path}: not a capture: text"),
    ):
        reader = RangeReader(each)
        assert bool([len(window) for window in reader.windows() if len(window)]) == (not reason)
        assert reader.unread == reason
