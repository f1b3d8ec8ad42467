"""Files by packet number, and segments from sources other than files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dissector import open_capture
from dissector.engine.reading.capture import Options, Reading
from dissector.engine.reading.segment_source import FileNames, FileSource
from tests.dissector.engine.reading.test_capture import crossing, write


def test_packets_belong_to_the_last_file_beginning_before_them() -> None:
    names = FileNames()
    for first, name in ((0, "a"), (0, "a"), (3, "a"), (5, "b"), (7, "c")):
        names.add(first, name)
    assert [names.file_of(packet) for packet in (0, 4, 5, 6, 7, 100)] == list("aabbcc")
    columns = names.files_of(np.array([6, 0, 7]))
    assert [columns.values[code] for code in columns.codes] == ["b", "a", "c"]


def test_a_reading_continues_with_fed_segments(tmp_path: Path) -> None:
    file = write(tmp_path / "a.pcap", crossing())
    feed = FileSource([file], window_bytes=100)
    reading = Reading([], Options(), source=feed)
    windows = list(feed.windows())
    half = len(windows) // 2
    exchanges = [*reading.advance(windows[:half])]
    assert 0 < sum(len(window.exchanges) for window in exchanges) < 17
    exchanges += [*reading.advance(windows[half:]), *reading.finish()]
    assert sum(len(window.exchanges) for window in exchanges) == len(list(open_capture(file)))
    assert (reading.packets, reading.bytes) == (len(crossing()), feed.bytes)
    known = reading.streams.connections
    first = known.first_packets(np.arange(len(known))).tolist()
    assert first == sorted(set(first))
    assert first[0] == 0
