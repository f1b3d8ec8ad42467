"""
The stage that decrypts TLS, between TCP and framing: chunks in, chunks out.

The rows of a connection with a key become rows of its plaintext; all others pass unchanged. A
window without TLS costs one look-up in each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dissector.capture.columns import DATA, END, GAP, IN_CARRY_OVER, IN_WINDOW, NEVER, Chunks
from dissector.capture.tcp.tables.connection_table import ConnectionTable
from dissector.engine.reading.tls_recognition import TlsRecognition, bytes_of
from dissector.engine.tables.exchange_table import Ints
from dissector.tls.key_log import KeyLog

if TYPE_CHECKING:
    from dissector.tls.tls_connection import TlsConnection
    from dissector.tls.tls_summary import Plaintext, TlsSummary

T = TypeVar("T")

UNKNOWN_GAP_BYTES = (1 << 31) + 4
"""Length of a gap of unknown length: no frame reaches across it."""

_NO_BARRIER = (NEVER, NEVER)

_CLIENT_RANDOM = slice(11, 43)
"""Where the random of a ClientHello is in the first record. Source: RFC 8446, 4.1.2 and 5.1."""


_COLUMNS = [each.name for each in fields(Chunks) if each.name not in ("data", "carry_over")]

_MADE_COLUMNS = ("kind", "origin", "start", "length", "side", "packet", "time_ns")
"""
Columns of rows of plaintext, which the two barriers follow; the others equal those of the releasing
row.
"""


class TlsDecryption:
    """
    Decrypts the TLS connections of a capture.

    The released data depends only on earlier rows, so windows may be cut anywhere. Until the first
    plaintext of a connection its rows pass encrypted, and the correlator recognises TLS.

    Attributes:
        begun: Connections with their first plaintext in the last call: what came of them before was
            encrypted.
    """

    def __init__(
        self,
        table: ConnectionTable,
        ports: frozenset[int],
        keys: KeyLog,
        read_secrets: Callable[[], Iterable[bytes]] = tuple,
    ) -> None:
        """
        Start a capture.

        Args:
            table: The TCP connections of the capture.
            ports: Only connections on these are read; empty: all.
            keys: The secrets; more may come.
            read_secrets: Reads the secrets of all files in advance.
        """
        self.begun: list[int] = []
        self._recognition = TlsRecognition(table, ports)
        self._connections: dict[int, TlsConnection] = {}
        self._decrypted: set[int] = set()
        self._barriers: dict[int, tuple[int, int]] = {}
        self._emitted: dict[int, tuple[int, int]] = {}
        self.attach(keys, read_secrets)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without keys; `attach` brings them back."""
        left_out = ("_keys", "_read_secrets")
        return {name: value for name, value in self.__dict__.items() if name not in left_out}

    def attach(self, keys: KeyLog, read_secrets: Callable[[], Iterable[bytes]] = tuple) -> None:
        """Use these keys, also after unpickling."""
        self._keys = keys
        self._read_secrets: Callable[[], Iterable[bytes]] | None = read_secrets
        for connection in self._connections.values():
            connection.attach(keys)

    def __len__(self) -> int:
        """Return the number of TLS connections."""
        return len(self._connections)

    @property
    def decrypted_count(self) -> int:
        """Of how many connections there is plaintext."""
        return len(self._decrypted)

    def summary_of(self, number: int) -> TlsSummary | None:
        """Return the known facts about a connection; None if it is not TLS."""
        connection = self._connections.get(number)
        return None if connection is None else connection.summary()

    def summaries(self) -> Iterator[TlsSummary]:
        """Yield the known facts about each TLS connection."""
        return (connection.summary() for connection in self._connections.values())

    def low_watermark(self) -> int:
        """Return the first packet with bytes that wait for keys or for the other side."""
        return min((min(each) for each in self._barriers.values()), default=NEVER)

    def feed(self, chunks: Chunks) -> Chunks:
        """Decrypt the chunks of the next window."""
        self.begun.clear()
        for number, row in self._recognition.feed(chunks, self._keys.may_decrypt).items():
            self._start(number, chunks, row)
        rows = self._recognition.tls_rows(chunks)
        return self._decrypt(chunks, rows) if len(rows) else chunks

    def try_again(self) -> Chunks:
        """Return what waited for lines that the key log has now."""
        self.begun.clear()
        rows = _empty_rows([each for each in self._barriers for _ in (0, 1)], DATA)
        rows.side[1::2] = 1
        return self._decrypt(rows, np.arange(len(rows)), is_artificial=True)

    def finish(self, numbers: Ints | None = None) -> Chunks:
        """Return what still waited: the capture has ended, or these connections have."""
        self.begun.clear()
        chosen = self._connections if numbers is None else numbers.tolist()
        waiting = [number for number in chosen if number in self._connections]
        rows = _empty_rows(waiting, END)
        return self._decrypt(rows, np.arange(len(rows)), is_artificial=True)

    def retain(self, numbers: Ints) -> None:
        """Forget all connections but these, in order; each gets its index as its new number."""
        new_numbers = {number: at for at, number in enumerate(numbers.tolist())}
        self._recognition.retain(numbers)
        self._connections = _renumbered(self._connections, new_numbers)
        self._barriers = _renumbered(self._barriers, new_numbers)
        self._emitted = _renumbered(self._emitted, new_numbers)
        self._decrypted = {new_numbers[each] for each in self._decrypted if each in new_numbers}

    def _start(self, number: int, chunks: Chunks, row: int) -> None:
        """Start a TLS connection with this first row."""
        # Cryptography takes longer to load than a small capture to read.
        from dissector.tls.tls_connection import TlsConnection

        if self._read_secrets is not None:
            begin = bytes_of(chunks, row, 43)
            is_hello = begin[:1] == b"\x16" and begin[5:6] == b"\x01"
            if not (is_hello and self._keys.has_line(begin[_CLIENT_RANDOM])):
                for content in self._read_secrets():
                    self._keys.add(content)
                self._read_secrets = None
        self._connections[number] = TlsConnection(self._keys)

    def _decrypt(self, chunks: Chunks, rows: Ints, *, is_artificial: bool = False) -> Chunks:
        """
        Replace rows of TLS connections by their plaintext, where there is any.

        Args:
            chunks: The rows of all connections.
            rows: The rows of TLS connections.
            is_artificial: Whether no row is of the capture, so that none is kept.
        """
        content, made = bytearray(), list[tuple[int, ...]]()
        counts = np.ones(len(chunks), np.int64)
        encrypted: dict[int, list[int]] = {}
        emitted, decrypted = 0, self._decrypted
        numbers, kinds = chunks.connection[rows].tolist(), chunks.kind[rows].tolist()
        barriers = zip(*chunks.barrier[rows].T.tolist(), strict=True)
        lines = zip(rows.tolist(), numbers, kinds, self._fed(chunks, rows), barriers, strict=True)
        for row, number, kind, plain, barrier in lines:
            if number not in decrypted:
                if not plain:
                    encrypted.setdefault(number, []).append(row)
                    if self._connections[number].is_settled:
                        self._recognition.let_pass(number)
                    continue
                decrypted.add(number)
                self.begun.append(number)
                counts[encrypted.pop(number, [])] = 0
            if number in self._barriers:
                first, second = self._barriers[number]
                barrier = min(first, barrier[0]), min(second, barrier[1])
            for side, data, length, time_ns, packet in plain:
                if data is None:
                    size = UNKNOWN_GAP_BYTES if length is None else length
                    made.append((GAP, IN_WINDOW, 0, size, side, packet, time_ns, *barrier))
                else:
                    start = len(content)
                    content += data
                    size = len(data)
                    made.append((DATA, IN_CARRY_OVER, start, size, side, packet, time_ns, *barrier))
            is_new = self._emitted.get(number, _NO_BARRIER) != barrier
            if is_new and (plain or not is_artificial):
                self._emitted[number] = barrier
            if not is_artificial and (kind == END or (is_new and not plain)):
                own = int(chunks.side[row]), int(chunks.packet[row]), int(chunks.time_ns[row])
                made.append((END if kind == END else DATA, IN_WINDOW, 0, 0, *own, *barrier))
            counts[row], emitted = len(made) - emitted, len(made)
        kept = [each for some in encrypted.values() for each in some]
        if is_artificial:
            counts[kept] = 0
        elif len(kept) == len(rows):
            return chunks
        return _joined(chunks, rows[~np.isin(rows, kept)], counts, made, content)

    def _fed(self, chunks: Chunks, rows: Ints) -> Iterator[list[Plaintext]]:
        """Pass rows to their connections, one by one; yield the released rows."""
        names = ("connection", "side", "kind", "origin", "start", "length", "packet", "time_ns")
        columns = (getattr(chunks, name)[rows].tolist() for name in names)
        arrays, heads = (chunks.data.data, chunks.carry_over.data), self._recognition.heads
        for number, side, kind, origin, start, length, packet, time_ns in zip(
            *columns, strict=True
        ):
            connection = self._connections[number]
            if kind == DATA:
                content = bytes(arrays[origin][start : start + length])
                if number in heads:
                    before = [connection.feed(*piece) for piece in heads.pop(number)]
                    plain = [*chain.from_iterable(before)]
                    plain += connection.feed(side, content, time_ns, packet)
                else:
                    plain = connection.feed(side, content, time_ns, packet)
            elif kind == GAP:
                plain = connection.gap(side, length, time_ns, packet)
            else:
                plain = connection.finish()
            waiting = connection.barriers()
            if waiting is not None:
                first, second = (NEVER if each is None else each for each in waiting)
                self._barriers[number] = first, second
            elif number in self._barriers:
                del self._barriers[number]
            yield plain


def _joined(
    chunks: Chunks, replaced: Ints, counts: Ints, made: list[tuple[int, ...]], content: bytearray
) -> Chunks:
    """Return chunks with some rows replaced by the given ones, and their content."""
    width = len(_MADE_COLUMNS) + 2
    table = np.fromiter(chain.from_iterable(made), np.int64, width * len(made)).reshape(-1, width)
    source = np.repeat(np.arange(len(chunks)), counts)
    is_replaced = np.zeros(len(chunks), bool)
    is_replaced[replaced] = True
    targets = np.flatnonzero(is_replaced[source])
    columns = {name: getattr(chunks, name)[source] for name in _COLUMNS}
    for at, name in enumerate(_MADE_COLUMNS):
        columns[name][targets] = table[:, at]
    columns["barrier"][targets] = table[:, len(_MADE_COLUMNS) :]
    in_carry_over = columns["origin"][targets] == IN_CARRY_OVER
    columns["start"][targets] += in_carry_over * len(chunks.carry_over)
    carry_over = np.concatenate((chunks.carry_over, np.frombuffer(content, np.uint8)))
    return replace(chunks, carry_over=carry_over, **columns)


def _empty_rows(numbers: list[int], kind: int) -> Chunks:
    """Return a row without bytes for each of these connections."""
    zeros, zero_bytes = np.zeros(len(numbers), np.int64), np.zeros(len(numbers), np.int8)
    no_bytes = np.zeros(0, np.uint8)
    return Chunks(
        data=no_bytes,
        carry_over=no_bytes,
        connection=np.array(numbers, np.int64),
        side=zero_bytes.copy(),
        kind=np.full_like(zero_bytes, kind),
        origin=zero_bytes,
        start=zeros,
        length=zeros,
        packet=zeros,
        time_ns=zeros,
        release=zeros,
        barrier=np.full((len(numbers), 2), NEVER, np.int64),
    )


def _renumbered(table: dict[int, T], new_numbers: dict[int, int]) -> dict[int, T]:
    """Return a table with new connection numbers, without connections that have none."""
    return {new_numbers[number]: each for number, each in table.items() if number in new_numbers}
