"""Compares the exchanges of two readings by sums of hashes, in little memory."""

from __future__ import annotations

import secrets

import numpy as np

from dissector.capture.columns import unique
from dissector.capture.tcp.connection_table import ConnectionTable
from dissector.engine.export.flow_filter import Bools, Hashes, connection_hashes
from dissector.engine.tables.exchange_table import Exchanges, Frames, Ints

_FACTOR = np.uint64(secrets.randbits(64) | 1)
_SHIFT = np.uint64(29)


class ExchangeSums:
    """For each connection, the number of its exchanges and the sum of their hashes."""

    def __init__(self) -> None:
        self._sums: Hashes = np.zeros(0, np.uint64)

    def add(self, table: Exchanges) -> None:
        """Add exchanges: their status, ids, sizes and times, not their numbers."""
        if not len(table):
            return
        needed = int(table.connection.max()) + 1
        if needed > len(self._sums):
            self._sums = np.append(
                self._sums, np.zeros(max(needed, 2 * len(self._sums)) - len(self._sums), np.uint64)
            )
        np.add.at(self._sums, table.connection, exchange_hashes(table))

    def by_endpoints(self, table: ConnectionTable) -> tuple[Hashes, Hashes]:
        """Return the sums of each pair of endpoints, sorted by the hash of the pair."""
        sums = np.zeros(len(table), np.uint64)
        count = min(len(sums), len(self._sums))
        sums[:count] = self._sums[:count]
        keys, index = np.unique(endpoint_hashes(table), return_inverse=True)
        totals = np.zeros(len(keys), np.uint64)
        np.add.at(totals, index, sums)
        has_any = totals != 0
        return keys[has_any], totals[has_any]


def endpoint_hashes(table: ConnectionTable) -> Hashes:
    """Return a hash of the two endpoints of each connection, in any order."""
    hashes = connection_hashes(table)
    return hashes[:, 0] + hashes[:, 1]


def differing(
    expected: tuple[Hashes, Hashes], found: tuple[Hashes, Hashes], table: ConnectionTable
) -> Bools:
    """Return the connections of a table with different sums for their endpoints."""
    keys = unique(np.concatenate((expected[0], found[0])))
    totals = np.zeros((2, len(keys)), np.uint64)
    for row, (some_keys, sums) in zip(totals, (expected, found), strict=True):
        row[np.searchsorted(keys, some_keys)] = sums
    different: Bools = np.isin(endpoint_hashes(table), keys[totals[0] != totals[1]])
    return different


def exchange_hashes(table: Exchanges) -> Hashes:
    """Return a hash of each exchange."""
    columns: list[Ints] = [
        *(getattr(table, name) for name in ("status", "token", "answers_acks_0", "broken_off")),
        *(table.api_key, table.api_version, table.correlation_id),
        *_frame_columns(table.request),
        *_frame_columns(table.response),
    ]
    mixed = np.full(len(table), _FACTOR)
    for column in columns:
        mixed = (mixed ^ column.astype(np.int64).view(np.uint64)) * _FACTOR
        mixed ^= mixed >> _SHIFT
    return mixed


def _frame_columns(frames: Frames) -> tuple[Ints, ...]:
    return frames.captured_bytes, frames.size, frames.time_ns
