"""
The side that closed a connection first: by the order of FINs, or the sender of a RST.

Gaps have the times of the data around them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dissector import Options, open_capture
from dissector.capture.tcp.connections import END_REASONS
from dissector.engine.reading.capture import Capture
from tests import tcp_captures
from tests.tcp_captures import START_NS, STEP_NS

Ends = list[tuple[int, str, int]]


def ends_of(folder: Path, wire: tcp_captures.Wire) -> Ends:
    """Return connection, reason and closer of all ends."""
    capture = open_capture(tcp_captures.write(folder / "a.pcap", wire.packets))
    return [
        (number, END_REASONS[how], closer)
        for window in capture.windows()
        for number, how, closer in zip(
            window.ends.connection.tolist(),
            window.ends.how.tolist(),
            window.ends.closer.tolist(),
            strict=True,
        )
    ]


@pytest.mark.parametrize("first", [0, 1])
def test_the_first_fin_closes(tmp_path: Path, first: int) -> None:
    wire = tcp_captures.Wire()
    wire.connect().syn().client(b"x").fin(first).fin(1 - first)
    assert ends_of(tmp_path, wire) == [(0, "fin", first)]


@pytest.mark.parametrize("side", [0, 1])
def test_a_reset_closes_unless_it_answers_a_fin(tmp_path: Path, side: int) -> None:
    wire = tcp_captures.Wire()
    wire.connect(50000).syn().client(b"x").rst(side)
    wire.connect(50001).syn().client(b"x").fin(1 - side).rst(side)
    wire.connect(50002).syn().client(b"x").fin(side).rst(side)
    closers = [side, 1 - side, side]
    assert ends_of(tmp_path, wire) == [(at, "rst", each) for at, each in enumerate(closers)]


def test_an_open_connection_has_no_end(tmp_path: Path) -> None:
    wire = tcp_captures.Wire()
    wire.connect().syn().client(b"x").fin(0)
    assert ends_of(tmp_path, wire) == []


def test_reused_ports_do_not_close_a_connection(tmp_path: Path) -> None:
    wire = tcp_captures.Wire()
    wire.connect().syn().client(b"x")
    wire.connect(isn=(77_000, 5)).syn().client(b"x")
    assert ends_of(tmp_path, wire) == [(0, "reused", -1)]


def gaps_of(capture: Capture) -> list[tuple[int, int, int, int]]:
    """Return connection, side, and times in milliseconds of all gaps."""
    return [
        (number, side, *((each - START_NS) // STEP_NS for each in times))
        for window in capture.windows()
        for number, side, *times in zip(
            window.gaps.connection.tolist(),
            window.gaps.side.tolist(),
            window.gaps.since_ns.tolist(),
            window.gaps.until_ns.tolist(),
            strict=True,
        )
    ]


GAPS = [(0, 0, 6, 8), (0, 0, 8, 8), (0, 1, 3, 113)]


def lossy_wire() -> tcp_captures.Wire:
    """Return a wire with a lost segment, a truncated one, and one lost at the end."""
    wire = tcp_captures.Wire()
    first = wire.connect().syn().broker(b"hello").client(b"abc", b"def", b"ghi", b"jkl")
    wire.now_ns += 100 * STEP_NS
    first.client(b"mno").broker(b"answer")
    lost = [wire.packets[each] for each in (7, 12)]
    wire.packets[8] = wire.packets[8].cut(tcp_captures.HEADERS_BYTES + 1)
    wire.packets = [each for each in wire.packets if each not in lost]
    return wire


@pytest.mark.parametrize("window_bytes", [100, 1 << 20])
def test_gaps_have_the_times_around_them(tmp_path: Path, window_bytes: int) -> None:
    path = tcp_captures.write(tmp_path / "a.pcap", lossy_wire().packets)
    capture = Capture([path], Options(window_bytes=window_bytes))
    assert gaps_of(capture) == GAPS
