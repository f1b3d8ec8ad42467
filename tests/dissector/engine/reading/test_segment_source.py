"""Files by packet number, and segments from sources other than files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dissector import open_capture
from dissector.engine.reading.capture import Options, Reading
from dissector.engine.reading.packet_files import FileNames
from dissector.engine.reading.segment_source import FileSource
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


def test_packets_of_merged_files_have_their_places() -> None:
    names = FileNames()
    paths = ["day/a", "day/b", "c"]
    names.add(0, "day/a")
    names.add_merged(3, np.array([1, 0, 1, 2], np.int32), paths)
    names.add_merged(7, np.array([2, 2, 0], np.int32), paths)
    names.add(10, "c")
    of_each = [*("day/a",) * 3, "day/b", "day/a", "day/b", *("c",) * 3, "day/a", "c", "c"]
    assert [names.file_of(packet) for packet in range(12)] == of_each
    columns = names.files_of(np.arange(12)[::-1].copy())
    assert [columns.values[code] for code in columns.codes] == of_each[::-1]
    assert len(set(columns.values)) == 3
    assert names.numbers_of(np.arange(12)).tolist() == [1, 2, 3, 1, 4, 2, 1, 2, 3, 5, 4, 5]
    assert names.numbers_of(np.array([11, 3])).tolist() == [5, 1]
    assert names.places_text([1, 2, 5, 4, 12]) == "a: 1-2,4; b: 1; c: 5"


def test_files_of_one_name_are_told_apart() -> None:
    names = FileNames()
    names.add(0, "one/a")
    assert names.places_text([1]) == ""
    names.add(2, "two/a")
    assert names.places_text([2, 3]) == "one/a: 2; two/a: 1"
    for number in range(4):
        names.add(3 + number, f"{number}")
    assert names.places_text([1, 3, 4, 5, 6]) == "one/a: 1; two/a: 1; 0: 1; 2 more files"
