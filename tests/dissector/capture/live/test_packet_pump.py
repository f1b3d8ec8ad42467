"""Growing files, read behind their writer."""

from __future__ import annotations

import os
from pathlib import Path

from dissector.capture.live.packet_pump import GrowingFiles, Pump
from tests import tcp_captures

WIRE = tcp_captures.Wire()
WIRE.connect().syn().client(b"x" * 1000)
DATA = tcp_captures.pcap_file(WIRE.packets)
HEADER = DATA[:24]


def test_files_of_a_ring_are_one_capture(tmp_path: Path) -> None:
    """Including files deleted before they were read; with one header."""
    files = GrowingFiles()
    for number in range(3):
        path = tmp_path / f"{number}.pcap"
        path.write_bytes(HEADER + bytes([number]))
        files.add(path)
        path.unlink()
    files.end()
    assert b"".join(files.chunks()) == HEADER + b"\0\1\2"


def test_a_file_is_read_while_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    path.write_bytes(DATA[:30])
    files = GrowingFiles()
    files.add(path)
    chunks = files.chunks()
    assert next(chunks) == DATA[:30]
    with path.open("ab") as file:
        file.write(DATA[30:])
    assert next(chunks) == DATA[30:]
    files.end()
    assert list(chunks) == []


def test_a_pump_ends_with_its_reader(tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    counts: list[int] = []
    pump = Pump(iter([DATA] * 1000), theirs, counts.append)
    pump.start()
    assert os.read(ours, 24) == HEADER
    os.close(ours)
    pump.join()
    assert 0 < len(counts) < 1000
    assert counts[0] == len(DATA)


def test_deleted_files_are_counted(tmp_path: Path) -> None:
    files = GrowingFiles()
    files.add(tmp_path / "gone.pcap")
    files.end()
    assert (files.missed, list(files.chunks())) == (1, [])
