"""Files of a capture come in the order of their first packets."""

from __future__ import annotations

import gzip
import io
import os
import threading
from pathlib import Path

import pytest

from dissector.capture.formats.capture_reader import read_packets
from dissector.capture.formats.inputs import BytesInput
from dissector.errors import CaptureError
from tests.dissector.capture.handmade_packets import enhanced, interface, pcap, section

S = 1_000_000_000
"""Nanoseconds in a second."""


def written(folder: Path, name: str, *seconds: float) -> str:
    path = folder / name
    path.write_bytes(pcap([(round(each * S), f"{name} {each}".encode()) for each in seconds]))
    return str(path)


def read(*paths: str, **options: object) -> list[tuple[str, float, int]]:
    """Return the file, time and number of each packet."""
    return [
        (Path(paths[file]).name, time_ns / 1e9, window.first + row)
        for window in read_packets(paths, **options)  # type: ignore[arg-type]
        for row, (file, time_ns) in enumerate(
            zip(window.file.tolist(), window.time_ns.tolist(), strict=True)
        )
    ]


def problems(*paths: str, **options: object) -> list[tuple[str, str]]:
    windows = read_packets(paths, **options)  # type: ignore[arg-type]
    return [(name, each.what) for window in windows for name, each in window.problems]


def test_rotated_files_in_any_order(tmp_path: Path) -> None:
    names = [written(tmp_path, f"cap.pcap{number or ''}", number, number) for number in range(12)]
    expected = [(Path(names[at // 2]).name, float(at // 2), at) for at in range(24)]
    assert read(*names) == expected
    assert read(*sorted(names)) == expected
    assert read(*reversed(names)) == expected
    assert problems(*reversed(names)) == []


def test_files_of_one_time_come_by_name_and_empty_ones_last(tmp_path: Path) -> None:
    names = [written(tmp_path, "b", 1), written(tmp_path, "a", 1), written(tmp_path, "c")]
    assert [name for name, *_ in read(*reversed(names))] == ["a", "b"]


def test_compressed_files_and_pcapng(tmp_path: Path) -> None:
    second = tmp_path / "a.gz"
    second.write_bytes(gzip.compress(pcap([(5 * S, b"x")])))
    first = tmp_path / "z.pcapng"
    first.write_bytes(section() + interface() + enhanced(b"y", 4 * S // 1000))
    assert [name for name, *_ in read(str(second), str(first))] == ["z.pcapng", "a.gz"]


def test_contents_and_files_of_a_program(tmp_path: Path) -> None:
    names = ["late", "early"]
    inputs = {
        name: BytesInput(pcap([(at * S, b"x")])) for name, at in zip(names, (2, 1), strict=True)
    }
    assert [name for name, *_ in read(*names, inputs=inputs)] == ["early", "late"]


def test_a_pipe_keeps_its_place_and_is_told(tmp_path: Path) -> None:
    later, early = written(tmp_path, "later", 7), written(tmp_path, "early", 3)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    data = Path(written(tmp_path, "data", 5, 6)).read_bytes()
    threading.Thread(target=pipe.write_bytes, args=(data,), daemon=True).start()
    found = problems(later, early, str(pipe))
    what = "begins 2.000 s before the end of what was read before it"
    assert found == [(str(pipe), what)]
    with io.BytesIO(data) as stdin:
        assert [at for _, at, _ in read("-", later, early, stdin=stdin)] == [5, 6, 3, 7]
    with io.BytesIO(data) as stdin:
        assert problems("-", later, stdin=stdin) == []


def test_a_file_that_is_given_twice_is_told_once(tmp_path: Path) -> None:
    name, link = written(tmp_path, "a", 1, 2), tmp_path / "link"
    link.symlink_to(name)
    assert problems(name, str(link), name, written(tmp_path, "b", 3)) == [
        (str(link), f"is given twice, as {name}: its packets are read twice"),
        (name, "is given twice: its packets are read twice"),
    ]


def test_all_files_are_checked_first(tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("no capture")
    with pytest.raises(CaptureError, match="not a capture: text"):
        next(read_packets([written(tmp_path, "a", 1), str(text)]))
