"""The side that closed a connection first: by the order of FINs, or the sender of a RST."""

from __future__ import annotations

from pathlib import Path

import pytest

from dissector import open_capture
from dissector.capture.tcp.connections import END_REASONS
from tests import tcp_captures

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
