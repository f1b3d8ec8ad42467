"""Chunks for tests, of valid and invalid connections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from dissector.capture.columns import DATA, END, GAP, IN_CARRY_OVER, IN_WINDOW, NEVER, Chunks
from dissector.capture.tcp.connections import Connection, Side
from dissector.engine.tables.exchange_table import NONE
from tests.default_frames import request, response, sized
from tests.tcp_captures import pieces

PRODUCE, METADATA, HEARTBEAT, HANDSHAKE, API_VERSIONS, SHUTDOWN = 0, 3, 12, 17, 18, 7
STEP_NS = 20_000_000
"""Between two chunks: a response may be early by two of them."""

_RESENT = None, 0, 1, 3


@dataclass(frozen=True)
class Chunk:
    """One row of `Chunks`, with its bytes."""

    connection: int
    side: int
    kind: int = DATA
    data: bytes = b""
    missing: int = 0
    packet: int = 0
    horizon: tuple[int, int] = (NEVER, NEVER)
    held: bool = False
    rtt_ns: int = -1
    resent: int | None = None
    """How many chunks before it the newest repeated bytes came."""


def columns(rows: Sequence[Chunk]) -> Chunks:
    """Lay chunks out as a window, with other bytes between them, like packet headers."""
    data, held, start = bytearray(b"head"), bytearray(), []
    for row in rows:
        where = held if row.held else data
        start.append(len(where) if row.kind == DATA else 0)
        where += row.data + b"\0\0"

    def numbers(of: Callable[[Chunk], Any], dtype: Any = np.int64) -> Any:
        return np.array([of(row) for row in rows], dtype)

    return Chunks(
        data=np.frombuffer(bytes(data), np.uint8),
        carry_over=np.frombuffer(bytes(held), np.uint8),
        connection=numbers(lambda row: row.connection),
        side=numbers(lambda row: row.side, np.int8),
        kind=numbers(lambda row: row.kind, np.int8),
        origin=numbers(lambda row: IN_CARRY_OVER if row.held else IN_WINDOW, np.int8),
        start=np.array(start, np.int64),
        length=numbers(lambda row: row.missing or len(row.data)),
        packet=numbers(lambda row: row.packet),
        time_ns=numbers(lambda row: row.packet * STEP_NS),
        release=numbers(lambda row: row.packet),
        rtt_ns=numbers(lambda row: row.rtt_ns),
        resent_ns=numbers(
            lambda row: NONE if row.resent is None else (row.packet - row.resent) * STEP_NS
        ),
        barrier=numbers(lambda row: row.horizon).reshape(-1, 2),
    )


class KnownConnections(list[Connection]):
    """Connections by number."""

    def columns(self, numbers: Any) -> Any:
        known = [self[number] for number in numbers.tolist()]
        return SimpleNamespace(
            syn_seen=np.array([each.syn_seen for each in known], np.bool_),
            network=np.array([each.network for each in known], np.int64),
            address=np.array([(each.a[:2], each.b[:2]) for each in known], np.uint64).reshape(
                -1, 2, 2
            ),
            port=np.array([(each.a[2], each.b[2]) for each in known], np.int64).reshape(-1, 2),
        )


def connections(whole: Sequence[bool]) -> KnownConnections:
    """Return connections to two brokers."""
    sides = Side(), Side()
    return KnownConnections(
        Connection(n, 0, (0, 1, 50000 + n), (0, 2, 9092 + n % 2), 0, 0, sides, each, "")
        for n, each in enumerate(whole)
    )


def numbered(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Give each chunk its own packet."""
    return [replace(chunk, packet=n) for n, chunk in enumerate(chunks)]


@st.composite
def frames(draw: st.DrawFn, number: int) -> tuple[bytes, bytes]:
    """Draw a request and a response, mostly valid."""
    kind = draw(st.integers(0, 19))
    client_id = draw(st.sampled_from(("test", "test", "rdkafka", "x", "", None, "ø", "a\tb")))
    n = draw(st.sampled_from((number, number, number, 7, -1, 2**31 - 1)))
    if kind == 0:
        version = draw(st.integers(0, 13))
        acks = draw(st.sampled_from((0, 0, 1, -1)))
        text = draw(st.sampled_from((None, "t", "t" * 130))) if version >= 3 else None
        values = {"transactional_id": text} if version >= 3 else {}
        frame = request(PRODUCE, version, n, client_id, acks=acks, timeout_ms=1, **values)
        return frame, b"" if acks == 0 and draw(st.booleans()) else response(PRODUCE, version, n)
    if kind == 1:
        shake = request(HANDSHAKE, 0, n, client_id, mechanism="PLAIN")
        tokens = sized(b"\0user\0secret") if draw(st.booleans()) else b""
        return shake + tokens, response(HANDSHAKE, 0, n) + (sized(b"") if tokens else b"")
    if kind == 2:
        odd = draw(
            st.sampled_from((b"", b"\xff\xff\xff\xff", sized(b""), sized(b"\0\3\0"), bytes(9)))
        )
        return odd, draw(st.sampled_from((b"", odd, sized(n.to_bytes(4, "big", signed=True)))))
    if kind == 3:
        return request(HANDSHAKE, 1, n, client_id), b""
    if kind == 4:
        head = (1500).to_bytes(2, "big") + b"\0\1" + n.to_bytes(4, "big", signed=True)
        return sized(head + b"\0\4test" + bytes(5)), sized(head[4:])
    if kind == 5:
        return b"", response(HEARTBEAT, 4, n)
    if kind == 6:
        big = "m" * draw(st.sampled_from((50, 700)))
        return request(HEARTBEAT, 4, n, client_id, member_id=big), response(HEARTBEAT, 4, n)
    if kind == 7:
        return sized(b"\0\7\0\0" + n.to_bytes(4, "big", signed=True) + bytes(4)), b""
    return request(HEARTBEAT, 4, n, client_id), response(HEARTBEAT, 4, n)


@st.composite
def captures(draw: st.DrawFn, odd: bool = True) -> tuple[list[Chunk], list[bool]]:
    """Draw the chunks of some connections: frames cut anywhere, holes, ends, stray bytes."""
    whole = draw(st.lists(st.sampled_from((True, True, True, False)), min_size=1, max_size=3))
    chunks: list[Chunk] = []
    for turn in range(draw(st.integers(1, 10))):
        connection = draw(st.integers(0, len(whole) - 1))
        batch = [draw(frames(turn * 3 + n)) for n in range(draw(st.integers(1, 3)))]
        said = (
            b"".join(request_frame for request_frame, _ in batch),
            b"".join(response_frame for _, response_frame in batch),
        )
        cuts = st.lists(st.integers(1, 80), max_size=3)
        parts = [
            Chunk(connection, side, data=part)
            for side in (0, 1)
            for part in pieces(said[side], draw(cuts))
            if part
        ]
        if draw(st.integers(0, 5)) == 0:
            parts = draw(st.permutations(parts))
        for part in parts:
            chunks.append(replace(part, held=draw(st.integers(0, 4)) == 0))
            if odd:
                _disturb(draw, chunks)
    timing = st.tuples(st.sampled_from((-1, STEP_NS // 4, STEP_NS)), st.sampled_from(_RESENT))
    timings = cycle(draw(st.lists(timing, min_size=1, max_size=5)))
    timed = [
        replace(chunk, rtt_ns=rtt_ns, resent=resent)
        for chunk, (rtt_ns, resent) in zip(chunks, timings, strict=False)
    ]
    return numbered(timed), whole


def _disturb(draw: st.DrawFn, chunks: list[Chunk]) -> None:
    """Sometimes lose the newest chunk, hold chunks behind a hole, or end the connection."""
    last = chunks[-1]
    what = draw(st.integers(0, 24))
    if what == 0:
        chunks[-1] = Chunk(last.connection, last.side, GAP, missing=len(last.data))
    elif what == 1:
        chunks.append(Chunk(last.connection, last.side, GAP, missing=draw(st.integers(1, 50))))
    elif what == 2:
        chunks.append(Chunk(last.connection, draw(st.integers(0, 1)), END))
    elif what == 3:
        wall = draw(st.integers(0, len(chunks)))
        chunks[-1] = replace(last, horizon=draw(st.permutations((wall, NEVER))))
    elif what == 4:
        chunks.append(replace(last, data=b""))
    elif what == 5:
        chunks[-1] = replace(last, data=draw(st.binary(min_size=1, max_size=30)))
    elif what == 6:
        chunks.append(replace(last, data=b"\x16\x03\x01\0\x20" + bytes(32)))
