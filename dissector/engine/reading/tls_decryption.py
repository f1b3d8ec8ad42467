"""
The stage that decrypts TLS, between TCP and framing: chunks in, chunks out.

The rows of a connection with a key become rows of its plaintext; all others pass unchanged. A
window without TLS costs one look-up in each row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from dissector.capture.columns import DATA, END, GAP, NEVER, NO_BARRIER, Chunks
from dissector.capture.tcp.connection_table import ConnectionTable
from dissector.engine.reading.tls_recognition import TlsRecognition, bytes_of
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.tls.key_log import KeyLog

if TYPE_CHECKING:
    from dissector.engine.reading.tls_runs import TlsRuns
    from dissector.tls.tls_connection import TlsConnection
    from dissector.tls.tls_summary import Plaintext, Reason, TlsSummary

T = TypeVar("T")

_CLIENT_RANDOM = slice(11, 43)
"""Where the random of a ClientHello is in the first record. Source: RFC 8446, 4.1.2 and 5.1."""


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
        self._settled: set[int] = set()
        self._summaries: dict[int, TlsSummary] = {}
        self._decrypted: set[int] = set()
        self._barriers: dict[int, tuple[int, int]] = {}
        self._emitted: dict[int, tuple[int, int]] = {}
        self._dropped = self._dropped_decrypted = 0
        self._dropped_reasons = Counter["Reason"]()
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
        return len(self._connections) + len(self._summaries) + self._dropped

    @property
    def decrypted_count(self) -> int:
        """Number of connections with plaintext."""
        return len(self._decrypted) + self._dropped_decrypted

    def summary_of(self, number: int) -> TlsSummary | None:
        """Return the known facts about a connection; None if it is not TLS."""
        connection = self._connections.get(number)
        return self._summaries.get(number) if connection is None else connection.summary()

    def summaries(self) -> Iterator[TlsSummary]:
        """Yield the known facts about each TLS connection."""
        yield from self._summaries.values()
        yield from (connection.summary() for connection in self._connections.values())

    def reasons(self) -> Counter[Reason]:
        """Return why connections were not decrypted, and how many."""
        reasons = self._dropped_reasons.copy()
        reasons.update(each.reason for each in self.summaries() if each.reason is not None)
        return reasons

    def low_watermark(self) -> int:
        """Return the first packet with bytes that wait for keys or for the other side."""
        return min((min(each) for each in self._barriers.values()), default=NEVER)

    def feed(self, chunks: Chunks) -> Chunks:
        """Decrypt the chunks of the next window."""
        self.begun.clear()
        for number in self._settled:
            self._summaries[number] = self._connections.pop(number).summary()
        self._settled.clear()
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

    def drop(self, numbers: Ints) -> None:
        """Forget connections for ever, with what waited for keys; they still count."""
        self._recognition.drop(numbers)
        for number in numbers.tolist() if self._connections or self._summaries else ():
            summary = self.summary_of(number)
            if summary is None:
                continue
            self._dropped += 1
            self._dropped_decrypted += number in self._decrypted
            if summary.reason is not None:
                self._dropped_reasons[summary.reason] += 1
            self._decrypted.discard(number)
            self._settled.discard(number)
            for table in (self._connections, self._summaries, self._barriers, self._emitted):
                table.pop(number, None)

    def retain(self, numbers: Ints) -> None:
        """Forget all connections but these, in order; each gets its index as its new number."""
        new_numbers = {number: at for at, number in enumerate(numbers.tolist())}
        self._recognition.retain(numbers)
        self._connections = _renumbered(self._connections, new_numbers)
        self._summaries = _renumbered(self._summaries, new_numbers)
        self._settled = {new_numbers[each] for each in self._settled if each in new_numbers}
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
        # Captures without TLS do not load it.
        from dissector.engine.reading.plaintext_rows import PlaintextRows

        made, encrypted = PlaintextRows(chunks, rows), dict[int, list[int]]()
        runs = None if is_artificial else self._start_runs(chunks, rows)
        left = np.arange(len(rows)) if runs is None else runs.left()
        for position, number, kind, own, plain in self._fed(chunks, rows, left, runs):
            if number not in self._decrypted:
                if not plain:
                    encrypted.setdefault(number, []).append(position)
                    has_ended = kind == END and not self._keys.may_grow
                    if has_ended or self._connections[number].is_settled:
                        self._settled.add(number)
                        self._recognition.let_pass(number)
                    continue
                self._decrypted.add(number)
                self.begun.append(number)
                encrypted.pop(number, None)
            first, second = self._barriers.get(number, NO_BARRIER)
            barrier = min(first, own[0]), min(second, own[1])
            for each in plain:
                made.add(position, each, barrier)
            is_new = self._emitted.get(number, NO_BARRIER) != barrier
            if is_new and (plain or not is_artificial):
                self._emitted[number] = barrier
            if not is_artificial and (kind == END or (is_new and not plain)):
                made.add_empty(position, END if kind == END else DATA, barrier)
        kept = [each for some in encrypted.values() for each in some]
        if len(kept) == len(rows) and not is_artificial:
            return chunks
        if runs is not None:
            runs.add_to(made)
        return made.join(np.array(kept, np.int64), is_artificial=is_artificial)

    def _start_runs(self, chunks: Chunks, rows: Ints) -> TlsRuns:
        """Take the runs at the beginning of a window."""
        from dissector.engine.reading.tls_runs import TlsRuns

        runs = TlsRuns(chunks, rows, self._emitted)
        for number in filter(self._may_run, runs.connections()):
            runs.take(number, self._connections[number], 0)
        return runs

    def _may_run(self, number: int) -> bool:
        """Return whether data of a connection is decrypted, and none waits."""
        return number in self._decrypted and number not in self._barriers

    def _fed(
        self, chunks: Chunks, rows: Ints, positions: Ints, runs: TlsRuns | None
    ) -> Iterator[tuple[int, int, int, list[int], list[Plaintext]]]:
        """
        Pass rows to their connections, one by one or in runs.

        Yields:
            Of each row in no run: its position, connection, kind and barriers, and the released
            plaintext.
        """
        rows = rows[positions]
        names = ("connection", "side", "kind", "origin", "start", "length", "packet", "time_ns")
        columns = (getattr(chunks, name)[rows].tolist() for name in (*names, "barrier"))
        arrays, heads = (chunks.data.data, chunks.carry_over.data), self._recognition.heads
        for position, number, side, kind, origin, start, length, packet, time_ns, barrier in zip(
            positions.tolist(), *columns, strict=True
        ):
            connection = self._connections[number]
            if runs is not None and (
                runs.done[position]
                or (
                    kind == DATA
                    and self._may_run(number)
                    and runs.take(number, connection, position)
                )
            ):
                continue
            if kind == DATA:
                content = bytes(arrays[origin][start : start + length])
                plain = []
                if number in heads:
                    for piece in heads.pop(number):
                        plain += connection.feed(*piece)
                plain += connection.feed(side, content, time_ns, packet)
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
            yield position, number, kind, barrier, plain


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
        rtt_ns=zeros - 1,
        resent_ns=zeros + NONE,
        barrier=np.full((len(numbers), 2), NEVER, np.int64),
    )


def _renumbered(table: dict[int, T], new_numbers: dict[int, int]) -> dict[int, T]:
    """Return a table with new connection numbers, without connections that have none."""
    return {new_numbers[number]: each for number, each in table.items() if number in new_numbers}
