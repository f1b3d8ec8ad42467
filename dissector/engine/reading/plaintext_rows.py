"""The rows of a window after decryption: plaintext in place of rows of TLS connections."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from dissector.capture.columns import DATA, GAP, IN_CARRY_OVER, IN_WINDOW, Chunks
from dissector.engine.tables.exchange_table import NONE, Ints

if TYPE_CHECKING:
    from dissector.tls.tls_summary import Plaintext

UNKNOWN_GAP_BYTES = (1 << 31) + 4
"""Length of a gap of unknown length: no frame reaches across it."""

_COLUMNS = [each.name for each in fields(Chunks) if each.name not in ("data", "carry_over")]

_MADE_COLUMNS = ("kind", "origin", "start", "length", "side", "packet", "time_ns")
"""
Columns of new rows, between the position of the replaced row and its two barriers; the others equal
those of that row. `start` is the index of the content.
"""

_WIDTH = 1 + len(_MADE_COLUMNS) + 2

Barrier = tuple[int, int]


class PlaintextRows:
    """New rows in place of some of a window, each at the position of one of these."""

    def __init__(self, chunks: Chunks, rows: Ints) -> None:
        """Start with a window and those of its rows that may be replaced."""
        self._chunks, self._rows = chunks, rows
        self._contents: list[bytes] = []
        self._made: list[tuple[int, ...]] = []
        self._tables = [np.zeros((_WIDTH, 0), np.int64)]

    def add(self, position: int, plain: Plaintext, barrier: Barrier) -> None:
        """Add plaintext or a gap."""
        side, data, length, time_ns, packet = plain
        if data is None:
            size = UNKNOWN_GAP_BYTES if length is None else length
            made = (position, GAP, IN_WINDOW, 0, size, side, packet, time_ns, *barrier)
        else:
            at, size = len(self._contents), len(data)
            self._contents.append(data)
            made = (position, DATA, IN_CARRY_OVER, at, size, side, packet, time_ns, *barrier)
        self._made.append(made)

    def add_empty(self, position: int, kind: int, barrier: Barrier) -> None:
        """Add a row without bytes, with side, packet and time of the replaced one."""
        chunks, row = self._chunks, self._rows[position]
        own = int(chunks.side[row]), int(chunks.packet[row]), int(chunks.time_ns[row])
        self._made.append((position, kind, IN_WINDOW, 0, 0, *own, *barrier))

    def add_records(self, positions: Ints, contents: list[bytes], lengths: Ints) -> None:
        """Add the contents of records, with barrier, side, packet and time of the replaced rows."""
        table = self._copied(positions)
        table[2] = IN_CARRY_OVER
        table[3] = np.arange(len(self._contents), len(self._contents) + len(contents))
        table[4] = lengths
        self._contents += contents
        self._tables.append(table[:, lengths > 0])

    def add_barriers(self, positions: Ints) -> None:
        """Add rows without bytes, with barrier, side, packet and time of the replaced rows."""
        self._tables.append(self._copied(positions))

    def _copied(self, positions: Ints) -> np.ndarray:
        """Return rows of data without bytes."""
        chunks, rows = self._chunks, self._rows[positions]
        table = np.zeros((_WIDTH, len(rows)), np.int64)
        table[0], table[1], table[2] = positions, DATA, IN_WINDOW
        table[5], table[6], table[7] = chunks.side[rows], chunks.packet[rows], chunks.time_ns[rows]
        table[8:] = chunks.barrier[rows].T
        return table

    def join(self, kept: Ints, *, is_artificial: bool) -> Chunks:
        """
        Return the window with the new rows.

        Args:
            kept: Positions of rows that are not replaced.
            is_artificial: Whether these are left out: no row is of the capture.
        """
        chunks = self._chunks
        made = np.fromiter(chain.from_iterable(self._made), np.int64, _WIDTH * len(self._made))
        table = np.concatenate([made.reshape(-1, _WIDTH).T, *self._tables], axis=1)
        table = table[:, np.argsort(table[0], kind="stable")]
        counts = np.ones(len(chunks), np.int64)
        counts[self._rows] = np.bincount(table[0], minlength=len(self._rows))
        counts[self._rows[kept]] = not is_artificial
        is_made = np.zeros(len(chunks), bool)
        is_made[self._rows] = True
        is_made[self._rows[kept]] = False
        source = np.repeat(np.arange(len(chunks)), counts)
        targets = np.flatnonzero(is_made[source])
        begins = self._begins()
        in_carry_over = table[2] == IN_CARRY_OVER
        table[3, in_carry_over] = begins[table[3, in_carry_over]]
        columns = {name: getattr(chunks, name)[source] for name in _COLUMNS}
        for at, name in enumerate(_MADE_COLUMNS, 1):
            columns[name][targets] = table[at]
        columns["barrier"][targets] = table[-2:].T
        # Of rows of the other side, as theirs are not known.
        others = targets[table[5] != chunks.side[source[targets]]]
        columns["rtt_ns"][others], columns["resent_ns"][others] = -1, NONE
        carry_over = bytearray().join([chunks.carry_over.data, *self._contents])
        return replace(chunks, carry_over=np.frombuffer(carry_over, np.uint8), **columns)

    def _begins(self) -> Ints:
        """Return where each content begins in the new bytes that are carried over."""
        count = len(self._contents)
        begins = np.full(count + 1, len(self._chunks.carry_over), np.int64)
        begins[1:] += np.cumsum(np.fromiter(map(len, self._contents), np.int64, count))
        return begins
