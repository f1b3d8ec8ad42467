"""Packets of forwarded bytes, and disks that are too slow or full."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from dissector.cli.live_input import Ring
from dissector.errors import UsageError
from dissector.public import dissect, open_capture
from record.packets.packet_sink import BROKER, CLIENT, PacketSink
from record.packets.recording_files import RecordingFiles
from tests.default_frames import request, response
from tests.waiting import PATIENCE_S, wait_until

CLIENT_ADDRESS, BROKER_ADDRESS = ("10.0.0.1", 40_000), ("10.0.0.2", 9092)
HEARTBEAT = 12


class SlowFiles(RecordingFiles):
    """Files on a disk that takes nothing until it is released."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.is_free = threading.Event()

    def write(self, time_ns: int, packet: bytes) -> None:
        self.is_free.wait(PATIENCE_S)
        super().write(time_ns, packet)


def add_exchange(sink: PacketSink, number: int) -> None:
    sink.add(0, CLIENT, request(HEARTBEAT, 4, number))
    sink.add(0, BROKER, response(HEARTBEAT, 4, number))


def test_a_connection_reads_as_captured(tmp_path: Path) -> None:
    sink = PacketSink(RecordingFiles(str(tmp_path / "a.pcapng")), print)
    sink.open(0, CLIENT_ADDRESS, BROKER_ADDRESS)
    big = request(HEARTBEAT, 4, 1, "test", group_id="x" * 30_000) * 6
    sink.add(0, CLIENT, big)
    sink.add(0, BROKER, response(HEARTBEAT, 4, 1))
    sink.end(0, CLIENT)
    sink.end(0, BROKER, is_reset=True)
    sink.forget(0)
    sink.close()
    found = list(dissect(str(tmp_path / "a.pcapng")))
    assert [each.status for each in found] == ["answered", *["unanswered"] * 5]
    assert (found[0].client, found[0].broker) == ("10.0.0.1:40000", "10.0.0.2:9092")
    assert sink.written_bytes == len(big) + len(response(HEARTBEAT, 4, 1))
    assert not sink.failure


def test_a_slow_disk_delays_nobody_and_leaves_a_gap(tmp_path: Path) -> None:
    files, said = SlowFiles(tmp_path / "a.pcapng"), list[str]()
    size = len(request(HEARTBEAT, 4, 0)) + len(response(HEARTBEAT, 4, 0))
    sink = PacketSink(files, said.append, max_bytes=3 * size)
    sink.open(0, CLIENT_ADDRESS, BROKER_ADDRESS)
    for number in range(10):
        add_exchange(sink, number)
    assert sink.lost_bytes == 7 * size
    files.is_free.set()
    wait_until(lambda: sink.written_bytes == 3 * size)
    add_exchange(sink, 10)
    sink.close()
    assert said == ["the disk is too slow for this traffic: the recording has gaps"]
    capture = open_capture(str(tmp_path / "a.pcapng"))
    assert [each.correlation_id for each in capture] == [0, 1, 2, 10]
    streams = capture.streams()
    assert streams["gap_bytes_a"].sum() + streams["gap_bytes_b"].sum() == sink.lost_bytes


def test_a_full_disk_ends_the_recording_only() -> None:
    said: list[str] = []
    sink = PacketSink(RecordingFiles("/dev/full"), said.append)
    sink.open(0, CLIENT_ADDRESS, BROKER_ADDRESS)
    for number in range(10_000):
        add_exchange(sink, number)
    sink.close()
    assert sink.failure == "No space left on device"
    assert said == ["the recording ends here: No space left on device; connections go on"]


def test_a_ring_keeps_the_last_files_which_are_one_capture(tmp_path: Path) -> None:
    sink = PacketSink(RecordingFiles(str(tmp_path / "r.pcapng"), Ring(files=2, file_kb=1)), print)
    sink.open(0, CLIENT_ADDRESS, BROKER_ADDRESS)
    for number in range(100):
        add_exchange(sink, number)
    sink.close()
    files = sorted(tmp_path.iterdir())
    assert len(files) == 2
    assert all(each.name.startswith("r_000") and each.suffix == ".pcapng" for each in files)
    ids = [each.correlation_id for each in dissect(*map(str, files)) if each.status == "answered"]
    assert ids == list(range(100 - len(ids), 100))
    assert len(ids) > 5


def test_files_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere"):
        RecordingFiles(str(tmp_path / "nowhere" / "a.pcapng"))
    with pytest.raises(UsageError, match="not standard output"):
        RecordingFiles("-", Ring(2, 1))
