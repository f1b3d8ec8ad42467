"""Streams divided into frames: packet positions, gaps, limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reference.correlation.framer import Frame, Framer


def stream(limit: int = 1000, base: int = 0) -> Framer:
    """Return a stream that accepts every size but negative ones, framed from its start."""
    made = Framer(1, limit)
    made.base = made.scanned = base
    made.sync_at(0, lambda buffer, size: size >= 0)
    return made


def frames(made: Framer) -> list[Frame]:
    return list(iter(made.next_frame, None))


def sized(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def test_a_frame_over_several_packets_is_complete_with_its_last_byte() -> None:
    made = stream()
    for number, piece in enumerate((b"\0\0", b"\0\x05he", b"llo" + sized(b"") + b"\0")):
        made.add_data(piece, number, number * 10)
    assert frames(made) == [Frame(1, b"hello", 5, 2, 20, 0), Frame(1, b"", 0, 2, 20, 9)]
    assert (made.base, bytes(made.buffer), made.end) == (13, b"\0", 14)


@given(st.lists(st.binary(max_size=30), max_size=30), st.lists(st.integers(1, 40), min_size=1))
def test_any_segmentation_gives_the_same_frames(texts: list[bytes], sizes: list[int]) -> None:
    made, data, framed = stream(), b"".join(map(sized, texts)), []
    at = packet = 0
    ends = []
    while at < len(data):
        size = sizes[packet % len(sizes)]
        made.add_data(data[at : at + size], packet, 0)
        at, packet = min(at + size, len(data)), packet + 1
        ends.append(at)
        framed += frames(made)
    assert [frame.data for frame in framed] == texts
    for frame in framed:
        end = frame.offset + 4 + frame.size
        assert frame.packet == next(n for n, e in enumerate(ends) if e >= end)


def test_packet_positions_of_a_frame_are_dropped_after_it() -> None:
    made = stream(limit=10_000)
    data = sized(bytes(5000))
    for number in range(len(data)):
        made.add_data(data[number : number + 1], number, number)
    (frame,) = frames(made)
    assert frame.packet == 5003
    made.add_data(sized(b"x"), 6000, 1)
    assert [f.packet for f in frames(made)] == [6000]
    assert made.starts_packet(0)
    assert made.last_packet == 6000


def test_a_gap_inside_a_frame_keeps_its_other_bytes() -> None:
    made = stream()
    made.add_data(sized(b"0123456789")[:8], 0, 0)
    made.add_gap(4, 1, 1)
    assert frames(made) == []
    made.add_data(b"89" + sized(b"next"), 2, 2)
    assert frames(made) == [Frame(1, b"0123", 10, 2, 2, 0), Frame(1, b"next", 4, 2, 2, 14)]
    assert (made.missing, made.skipped, made.in_sync) == (4, 0, True)


def test_a_gap_beyond_a_frame_loses_framing_and_counts_bytes_once() -> None:
    made = stream()
    made.add_data(sized(b"0123456789")[:8], 0, 0)
    made.add_gap(50, 1, 1)
    assert frames(made) == [Frame(1, b"0123", 10, 1, 1, 0)]
    assert (made.in_sync, made.base, made.skipped, made.missing) == (False, 58, 0, 50)
    made.add_data(b"lost", 2, 2)
    made.skip(4)
    assert (made.skipped, made.base, made.end) == (4, 62, 62)


def test_a_gap_in_the_size_loses_framing() -> None:
    made = stream()
    made.add_data(b"\0\0", 0, 0)
    made.add_gap(1, 1, 1)
    assert (frames(made), made.in_sync, made.skipped) == ([], False, 2)


def test_a_frame_above_the_limit_is_kept_in_part() -> None:
    made = stream(limit=10)
    data = sized(b"x" * 100) + sized(b"next")
    for number in range(0, len(data), 30):
        made.add_data(data[number : number + 30], number // 30, 0)
    first, second = frames(made)
    assert (first.data, first.size, first.packet) == (b"x" * 10, 100, 3)
    assert second.data == b"next"


@pytest.mark.parametrize(
    ("there", "is_frame"), [(b"\xff\xff\0\0", False), (b"\xff\xff\0\0head", True)]
)
def test_a_size_above_the_limit_alone_is_no_frame(there: bytes, is_frame: bool) -> None:
    made = Framer(1, 1000)
    made.sync_at(0, lambda buffer, size: True)
    made.add_data(b"\x7f" + there[1:], 0, 0)
    assert (made.finish() is not None) == is_frame
    assert made.in_sync == is_frame


def test_an_unfinished_frame_is_reported_once() -> None:
    made = stream()
    made.add_data(sized(b"0123456789")[:-1], 0, 0)
    assert made.finish() == Frame(1, b"012345678", 10, 0, 0, 0, broken_off=True)
    assert made.finish() is None
    made.add_data(b"9" + sized(b"next"), 1, 1)
    assert [frame.data for frame in frames(made)] == [b"next"]


def test_a_rejected_size_loses_framing() -> None:
    made = stream()
    made.add_data(sized(b"a") + b"\xff\xff\xff\xff" + sized(b"b"), 0, 0)
    assert [frame.data for frame in frames(made)] == [b"a"]
    assert (made.in_sync, made.scanned) == (False, 5)


def test_positions_of_packets() -> None:
    made = Framer(0)
    for number, size in enumerate((3, 5, 2)):
        made.add_data(bytes(size), number * 10, 0)
    assert list(made.packet_starts()) == [0, 3, 8]
    assert [at for at in range(11) if made.starts_packet(at)] == [0, 3, 8, 10]
    assert [made.packet_at(at) for at in (1, 3, 4, 8, 9, 10)] == [0, 0, 10, 10, 20, 20]
    assert [made.offset_before_packet(n, 0) for n in (0, 5, 10, 20, 21)] == [0, 3, 3, 8, 10]
    made.skip(4)
    assert list(made.packet_starts()) == [4]
    assert not made.starts_packet(0)
    assert made.offset_before_packet(10, 0) == 0
