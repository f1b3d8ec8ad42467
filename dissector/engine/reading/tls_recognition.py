"""
Which connections are TLS, by their first bytes.

Where the beginning of a connection was not captured, a chain of TLS records within its first bytes
counts too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dissector.capture.columns import DATA, IN_CARRY_OVER, IN_WINDOW, Chunks
from dissector.capture.tcp.connection_table import ConnectionTable
from dissector.engine.tables.exchange_table import Ints
from dissector.kernel.numbered_values import NumberedValues

UNDECIDED, PASSES, TLS = range(3)
"""States of a connection; PASSES: not TLS, or TLS without keys."""

HEADER_BYTES = 5
MAX_HEAD_BYTES = 1 << 16
"""Bytes of a connection searched for records, if its beginning was not captured."""

_DATA_RECORD = b"\x17\x03\x03"
_MAX_BODY_BYTES = 0x48FF

Piece = tuple[int, bytes, int, int]
"""Side, bytes, time and packet."""


class TlsRecognition:
    """
    The state of each connection; a fold over the rows of chunks.

    Attributes:
        heads: State of connections without a captured beginning, while undecided; of new TLS
            connections, before the row that decided.
    """

    def __init__(self, table: ConnectionTable, ports: frozenset[int]) -> None:
        """Start a capture; connections on other ports than these pass; empty: all are read."""
        self._table = table
        self._ports = sorted(ports)
        self._states = NumberedValues(np.int8, UNDECIDED)
        self._seen = NumberedValues(np.int8, 0), NumberedValues(np.int8, 0)
        self.heads: dict[int, list[Piece]] = {}
        self._found: dict[int, int] = {}

    def feed(self, chunks: Chunks, has_keys: bool) -> dict[int, int]:
        """
        Decide about the connections of a window.

        Args:
            chunks: The window.
            has_keys: Whether anything can be decrypted, so that records are searched for.

        Returns:
            The new TLS connections, each with the row that decided.
        """
        count = len(self._table)
        for values in self._values:
            values.number_up_to(count)
        self._found = {}
        undecided = np.flatnonzero(self._states[chunks.connection] == UNDECIDED)
        if len(undecided):
            is_data = (chunks.kind[undecided] == DATA) & (chunks.length[undecided] > 0)
            self._decide(chunks, undecided[is_data], has_keys)
        return self._found

    def tls_rows(self, chunks: Chunks) -> Ints:
        """Return the rows of TLS connections, each from the row on that decided."""
        rows = np.flatnonzero(self._states[chunks.connection] == TLS)
        if not self._found:
            return rows
        found = np.array(sorted(self._found.items()), np.int64)
        number = chunks.connection[rows]
        place = np.minimum(np.searchsorted(found[:, 0], number), len(found) - 1)
        later: Ints = rows[(found[place, 0] != number) | (rows >= found[place, 1])]
        return later

    def let_pass(self, number: int) -> None:
        """Pass the rows of a connection unchanged from the next window on."""
        self._states[np.array([number])] = PASSES

    @property
    def _values(self) -> tuple[NumberedValues, ...]:
        """What is known of connections: their states, and whether each side was seen."""
        return self._states, *self._seen

    def drop(self, numbers: Ints) -> None:
        """Forget connections for ever."""
        for values in self._values:
            values.forget(numbers)
        for number in numbers.tolist() if self.heads else ():
            self.heads.pop(number, None)

    def retain(self, numbers: Ints) -> None:
        """Forget all connections but these, in order; each gets its index as its new number."""
        for values in self._values:
            values.renumber(numbers)
        heads = ((at, self.heads.get(number)) for at, number in enumerate(numbers.tolist()))
        self.heads = {at: head for at, head in heads if head is not None}

    def _decide(self, chunks: Chunks, rows: Ints, has_keys: bool) -> None:
        """Decide by rows of data of connections that are undecided."""
        number, side = chunks.connection[rows], chunks.side[rows]
        fresh = rows[np.where(side == 0, self._seen[0][number], self._seen[1][number]) == 0]
        # Without `return_index` numpy imports a module, which takes 10 ms.
        _, first = np.unique(2 * chunks.connection[fresh] + chunks.side[fresh], return_index=True)
        fresh = np.sort(fresh[first])
        number = chunks.connection[fresh]
        for each, seen in enumerate(self._seen):
            seen[number[chunks.side[fresh] == each]] = 1
        columns = self._table.columns(number)
        is_read = np.isin(columns.port, self._ports).any(axis=1) if self._ports else number >= 0
        begins = begins_record(chunks, fresh, columns.syn_seen) & is_read
        for each, row in zip(number[begins].tolist(), fresh[begins].tolist(), strict=True):
            self._found.setdefault(each, row)
        is_searched = has_keys & ~columns.syn_seen & is_read
        self.heads.update(
            (each, []) for each in number[is_searched].tolist() if each not in self.heads
        )
        has_both = (self._seen[0][number] & self._seen[1][number]) != 0
        self._states[number[~is_read | (has_both & ~is_searched)]] = PASSES
        if self.heads:
            self._search(chunks, rows)
        self._states[np.array([*self._found], np.int64)] = TLS

    def _search(self, chunks: Chunks, rows: Ints) -> None:
        """Look for chains of records in connections without a captured beginning."""
        for row in rows[np.isin(chunks.connection[rows], list(self.heads))].tolist():
            number = int(chunks.connection[row])
            head = self.heads.get(number)
            if head is None or row >= self._found.get(number, row + 1):
                continue
            side, content = int(chunks.side[row]), bytes_of(chunks, row)
            ends = [len(each[1]) for each in head if each[0] == side] + [len(content)]
            stream = b"".join(each[1] for each in head if each[0] == side) + content
            if has_chain(stream, set(np.cumsum(ends).tolist())):
                self._found[number] = row
            elif sum(len(each[1]) for each in head) + len(content) > MAX_HEAD_BYTES:
                del self.heads[number]
                self.let_pass(number)
            else:
                head.append((side, content, int(chunks.time_ns[row]), int(chunks.packet[row])))


def begins_record(chunks: Chunks, rows: Ints, start_captured: NDArray[np.bool_]) -> Any:
    """
    Return of each row of data whether it begins with a TLS record.

    Source: RFC 8446, section 5.1 (content type, legacy version, length up to 2^14 + 256).

    Args:
        chunks: The window.
        rows: The rows.
        start_captured: Whether the beginning of their connections was captured: then a part of a
            header is enough, which no plausible size of a Kafka message begins with.
    """
    length, at = chunks.length[rows], np.arange(HEADER_BYTES - 1)
    head = np.zeros((len(rows), HEADER_BYTES - 1), np.uint8)
    for origin, source in ((IN_WINDOW, chunks.data), (IN_CARRY_OVER, chunks.carry_over)):
        chosen = np.flatnonzero(chunks.origin[rows] == origin)
        if len(chosen):
            places = chunks.start[rows[chosen]][:, np.newaxis] + at
            head[chosen] = source[np.minimum(places, len(source) - 1)]
    low, high = np.array([0x14, 3, 0, 0]), np.array([0x17, 3, 4, 0x48])
    fits = ((head >= low) & (head <= high)) | (at >= length[:, np.newaxis])
    return fits.all(axis=1) & (start_captured | (length >= HEADER_BYTES))


def has_chain(stream: bytes, packet_ends: set[int]) -> bool:
    """Return whether a record of data ends with a packet, or is followed by another one."""
    at = stream.find(_DATA_RECORD)
    while at >= 0:
        end = _record_end(stream, at)
        if end is not None and (end in packet_ends or _record_end(stream, end) is not None):
            return True
        at = stream.find(_DATA_RECORD, at + 1)
    return False


def _record_end(stream: bytes, at: int) -> int | None:
    """Return where the record of data with its header here ends; None: there is no such header."""
    header = stream[at : at + HEADER_BYTES]
    length = int.from_bytes(header[3:], "big")
    is_header = len(header) == HEADER_BYTES and header.startswith(_DATA_RECORD)
    return at + HEADER_BYTES + length if is_header and length <= _MAX_BODY_BYTES else None


def bytes_of(chunks: Chunks, row: int, most: int | None = None) -> bytes:
    """Return the bytes of a row of data, or the first of them."""
    data = chunks.carry_over if chunks.origin[row] == IN_CARRY_OVER else chunks.data
    start, length = int(chunks.start[row]), int(chunks.length[row])
    return data[start : start + (length if most is None else min(length, most))].tobytes()
