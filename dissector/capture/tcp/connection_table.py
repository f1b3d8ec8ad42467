"""All TCP connections, as results by number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import overload

import numpy as np

from dissector.capture.columns import SEQ_MASK, Int8s, Int64s
from dissector.capture.tcp.connections import (
    END_REASONS,
    Connection,
    ConnectionColumns,
    Deliveries,
    Endpoint,
    Side,
)
from dissector.capture.tcp.live_rows import LiveRows
from dissector.capture.tcp.tcp_rows import (
    NONE,
    ConnectionRow,
    LossRow,
    RestingRow,
    StreamRow,
)
from dissector.kernel.named_rows import rows_of
from dissector.kernel.packed_rows import BLOCK_ROWS

FIRST_BYTES = 7
"""How many first bytes of a stream are kept: a whole TLS alert."""

COUNT_AT = 8 * FIRST_BYTES
"""They are a big-endian number, with their count from this bit on."""

_ADDRESS = (1 << 64) - 1
_LOSSES = [field.name for field in fields(Side)[2:8]]
"""The loss counters, in the order of the fields of `Side`."""

_SUMMED = [field.name for field in fields(Side)[:8]]
"""The counters that are kept of connections that are dropped."""

_ACKNOWLEDGED = "streams.packets", "streams.acked", "streams.first_acked"


class ConnectionTable(LiveRows, Sequence[Connection]):
    """
    The connections so far, by number.

    A `Connection` taken from the table is a snapshot. Of connections that are dropped, the length,
    the sums and the number of one-sided ones tell; all else is about the others.
    """

    def __init__(self) -> None:
        super().__init__()
        self._dropped_sums = dict.fromkeys(_SUMMED, 0)
        self._dropped_one_sided = 0

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, number: int) -> Connection: ...

    @overload
    def __getitem__(self, number: slice) -> list[Connection]: ...

    def __getitem__(self, number: int | slice) -> Connection | list[Connection]:
        """Return a snapshot of a connection, or of several."""
        if isinstance(number, slice):
            return [*self.of(np.arange(self.size)[number])]
        return next(self.of(np.array([range(self.size)[number]])))

    def __iter__(self) -> Iterator[Connection]:
        return self.of(self.kept())

    def of(self, numbers: Int64s) -> Iterator[Connection]:
        """Yield a snapshot of each of these connections."""
        for at in range(0, len(numbers), BLOCK_ROWS):
            part = numbers[at : at + BLOCK_ROWS]
            table = self.read(part)
            rows = rows_of(table, RestingRow)
            for row, number in enumerate(part.tolist()):
                yield _connection(number, rows[row])

    def columns(self, numbers: Int64s | None = None) -> ConnectionColumns:
        """Return a snapshot of all connections, or of these."""
        if numbers is None:
            numbers = self.kept()
        names = "network", "ends", "first_ns", "last_ns", "syn_seen", "ended"
        network, ends, first_ns, last_ns, syn_seen, ended, has_isn, sent, *acked = self.fields(
            numbers, *names, "streams.has_isn", "streams.bytes", *_ACKNOWLEDGED
        )
        return ConnectionColumns(
            number=numbers,
            network=network,
            address=np.stack((ends["high"], ends["low"]), axis=2).view(np.uint64),
            port=ends["port"],
            first_ns=first_ns,
            last_ns=last_ns,
            syn_seen=syn_seen != 0,
            both_syns=(has_isn != 0).all(axis=1),
            ended=ended.astype(np.int8),
            missing_side=_missing_sides(*acked),
            packets=acked[0],
            bytes=sent,
        )

    def endpoints(self, number: int) -> tuple[Endpoint, Endpoint]:
        """Return the endpoints of a connection."""
        (ends,) = self.fields(np.array([number]), "ends")
        first, second = (
            (high & _ADDRESS, low & _ADDRESS, port) for high, low, port in ends[0].tolist()
        )
        return first, second

    def first_packets(self, numbers: Int64s) -> Int64s:
        """Return the number of the first packet of each of these connections."""
        return self.fields(numbers, "first_packet")[0]

    def first_sequences(self, numbers: Int64s) -> Int64s:
        """Return the initial sequence numbers of both streams of these connections."""
        return self.fields(numbers, "streams.first")[0] & SEQ_MASK

    def fin_sequences(self, numbers: Int64s) -> Int64s:
        """Return the sequence numbers of the FINs of both sides; -1 while it is open."""
        finished, following = self.fields(numbers, "streams.finished", "streams.next")
        return np.where(finished != 0, following - 1 & SEQ_MASK, -1)

    def sums(self, *names: str) -> list[int]:
        """Return the sums of counters of `Side`, over both sides of all connections."""
        found = np.array([self._dropped_sums[name] for name in names], np.int64)
        for numbers in self.parts():
            found += self._sums_of(numbers, names)
        sums: list[int] = found.tolist()
        return sums

    def _sums_of(self, numbers: Int64s, names: Sequence[str]) -> list[int]:
        paths = [f"losses.{name}" if name in _LOSSES else f"streams.{name}" for name in names]
        return [int(each.sum()) for each in self.fields(numbers, *paths)]

    def one_sided(self) -> int:
        """Return the number of connections with packets of one side only."""
        return self._dropped_one_sided + sum(map(self._one_sided_of, self.parts()))

    def _one_sided_of(self, numbers: Int64s) -> int:
        return int((self.missing_sides(numbers) >= 0).sum())

    def drop(self, numbers: Int64s) -> None:
        """Drop connections at rest, whose numbers are not used again; their counters stay."""
        for name, total in zip(_SUMMED, self._sums_of(numbers, _SUMMED), strict=True):
            self._dropped_sums[name] += total
        self._dropped_one_sided += self._one_sided_of(numbers)
        super().drop(numbers)

    def deliveries(self, numbers: Int64s) -> Deliveries:
        """Return how far the streams of connections were delivered."""
        names = "first", "next", "acked", "resent"
        first, following, acked, resent = self.fields(numbers, *map("streams.{}".format, names))
        has_acked = (following != NONE) & (acked != NONE)
        return Deliveries(following - first, np.where(has_acked, acked - first, -1), resent)

    def next_sequences(self, numbers: Int64s) -> Int64s:
        """Return the next sequence numbers of both streams, sent or acknowledged; -1: neither."""
        following, acked = self.fields(numbers, "streams.next", "streams.acked")
        known = np.where(following == NONE, acked, following)
        return np.where(known == NONE, -1, known & SEQ_MASK)

    def missing_sides(self, numbers: Int64s) -> Int8s:
        """Return the side without a packet whose data the other acknowledged meanwhile; -1."""
        return _missing_sides(*self.fields(numbers, *_ACKNOWLEDGED))

    def first_bytes(self, number: int, side: int) -> bytes:
        """Return the first bytes of a stream, which tell its protocol, as far as it has any."""
        kept = int(self.fields(np.array([number]), "streams.first_bytes")[0][0, side])
        value = (kept & (1 << COUNT_AT) - 1).to_bytes(FIRST_BYTES, "big")
        return value[FIRST_BYTES - (kept >> COUNT_AT) :]

    def first_byte(self, numbers: Int64s) -> Int64s:
        """Return the first byte of both sides of these connections, [n, 2]; -1 without any."""
        kept = self.fields(numbers, "streams.first_bytes")[0]
        count = kept >> COUNT_AT
        return np.where(count > 0, kept >> 8 * np.maximum(count - 1, 0) & 0xFF, -1)

    def has_both_syns(self, number: int) -> bool:
        """Return whether the SYNs of both streams are known."""
        return bool(self.fields(np.array([number]), "streams.has_isn")[0].all())


def _missing_sides(packets: Int64s, acked: Int64s, first_acked: Int64s) -> Int8s:
    is_missing = (packets == 0) & (acked > first_acked)
    return np.where(is_missing.any(axis=1), is_missing[:, 1], -1).astype(np.int8)


def _connection(number: int, row: RestingRow) -> Connection:
    connection = row.connection
    a, b = _endpoints(connection)
    return Connection(
        id=number,
        network=connection.network,
        a=a,
        b=b,
        first_ns=connection.first_ns,
        last_ns=connection.last_ns,
        sides=(_side(row, 0), _side(row, 1)),
        syn_seen=bool(connection.syn_seen),
        ended=END_REASONS[connection.ended],
    )


def _side(row: RestingRow, side: int) -> Side:
    stream, losses = row.connection.streams[side], row.losses[side]
    counted = Side(stream.packets, stream.bytes, *(getattr(losses, each) for each in _LOSSES))
    counted.acked_not_captured = _acked_not_captured(stream, losses)
    counted.zero_window_ns = _zero_window_ns(stream, losses, row.connection.last_ns)
    counted.handshake_ns = _known(stream.handshake_ns)
    counted.srtt_ns = _known(stream.srtt_ns)
    return counted


def _acked_not_captured(stream: StreamRow, losses: LossRow) -> int:
    acked = losses.gap_bytes
    if stream.acked < losses.unacked_end:
        acked -= losses.unacked_gap_bytes
    is_silent = stream.next == NONE and stream.acked != NONE
    # Of a side without any data in the capture. One number more may be a FIN.
    silent = stream.acked - stream.first_acked if is_silent else 0
    return acked + (silent if silent > 1 else 0)


def _zero_window_ns(stream: StreamRow, losses: LossRow, last_ns: int) -> int:
    closed_ns = 0 if stream.closed_ns == NONE else max(last_ns - stream.closed_ns, 0)
    return losses.zero_window_ns + closed_ns


def _known(time_ns: int) -> int | None:
    return None if time_ns < 0 else time_ns


def _endpoints(row: ConnectionRow) -> tuple[Endpoint, Endpoint]:
    a, b = row.ends[0], row.ends[1]
    return _endpoint(a.high, a.low, a.port), _endpoint(b.high, b.low, b.port)


def _endpoint(high: int, low: int, port: int) -> Endpoint:
    return high & _ADDRESS, low & _ADDRESS, port
