"""A capture beside the request logs of the same time: what the broker says of each exchange."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from dissector.column_catalogue import ACCOUNTS
from dissector.engine.reading.capture import Capture, Options
from dissector.engine.tables.column_kinds import column_of
from dissector.engine.tables.column_types import (
    Coded,
    Column,
    Columns,
    Integers,
    Milliseconds,
    distinct,
)
from dissector.engine.tables.concatenate import ColumnConcatenator
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.errors import UsageError

OUTSIDE = "outside_ms"
"""The part of a captured latency that is not the broker's: network and client."""

_MOST_APART_NS = 600 * 10**9
"""A port may be used again later; clocks of hosts are not this far apart."""

_UNKNOWN = -1

_MATCHED = {
    **dict.fromkeys(("client", "broker", "api_key"), Coded),
    **dict.fromkeys(("correlation_id", "request_time_ns", "response_time_ns"), Integers),
}
"""The columns that show which exchange of a log is one of the capture, and their kinds."""

_LOGGED = {
    **_MATCHED,
    **{each.name: Milliseconds if each.type == "float" else Coded for each in ACCOUNTS},
}
"""The columns of logs that are read, and their kinds."""

_Label: TypeAlias = tuple[object, ...]
"""Client, broker and API key."""


class LogJoin:
    """
    Joins exchanges by connection, API and correlation id, and of several the nearest in time.

    Attributes:
        matched: Exchanges of the capture that the logs have, too.
        unmatched: Others of it.
        needs: The columns of the capture that it reads.
    """

    needs = frozenset((*_MATCHED, "latency_ms"))

    def __init__(self, logs: Sequence[str], options: Options) -> None:
        """
        Read logs.

        Raises:
            CaptureError: One can't be read.
            UsageError: One is no request log.
        """
        capture = Capture(list(logs), replace(options, values=None))
        if not capture.has_logs:
            raise UsageError(f"--with {logs[0]}: not a request log of a broker")
        self.matched = self.unmatched = 0
        joined = ColumnConcatenator()
        joined.add({name: column_of([], kind) for name, kind in _LOGGED.items()})
        for part in capture.parts(frozenset(_MATCHED)):
            joined.add({name: part[name] for name in _LOGGED})
        self._logged = joined.columns()
        self._numbers: dict[_Label, int] = {}
        for label in _labels(self._logged)[1]:
            if None not in label:
                self._numbers[label] = len(self._numbers)
        keys, times = self._keys(self._logged), _ends(self._logged)
        self._order = np.lexsort((times, keys))
        self._sorted_keys, self._sorted_times = keys[self._order], times[self._order]
        self._is_used = np.zeros(len(keys), np.bool_)

    @property
    def only_logged(self) -> int:
        """Exchanges of the logs that no exchange of the capture so far is."""
        return int(np.count_nonzero(~self._is_used))

    def parts(self, parts: Iterable[Columns]) -> Iterator[Columns]:
        """Yield rows of `pairs` with what the broker says of them."""
        return map(self._joined, parts)

    def _joined(self, columns: Columns) -> Columns:
        rows = self._nearest(self._keys(columns), _ends(columns))
        is_found = rows != _UNKNOWN
        self._is_used[rows[is_found]] = True
        self.matched += int(np.count_nonzero(is_found))
        self.unmatched += int(np.count_nonzero(~is_found))
        accounts = {each.name: _taken(self._logged[each.name], rows) for each in ACCOUNTS}
        outside = _outside(accounts["broker_ms"], columns["latency_ms"])
        return {**columns, **accounts, OUTSIDE: outside}

    def _keys(self, columns: Columns) -> Ints:
        """Return a number for connection, API and correlation id; negative if no log has them."""
        codes, labels = _labels(columns)
        numbers = [self._numbers.get(label, _UNKNOWN) for label in labels]
        number = np.array(numbers, np.int64)[codes]
        correlation_id = _values(columns["correlation_id"])
        is_known = (number != _UNKNOWN) & (correlation_id != NONE)
        return np.where(is_known, number << 32 | correlation_id & 0xFFFF_FFFF, _UNKNOWN)

    def _nearest(self, keys: Ints, times: Ints) -> Ints:
        """Return for each exchange the nearest row of the logs with its key."""
        first = np.searchsorted(self._sorted_keys, keys)
        end = np.searchsorted(self._sorted_keys, keys, side="right")
        # The first row that is not before the exchange, by bisection among those with its key.
        low, high = first.copy(), end.copy()
        while (is_open := low < high).any():
            middle = (low + high) // 2
            is_before = self._sorted_times[middle[is_open]] < times[is_open]
            low[is_open] = np.where(is_before, middle[is_open] + 1, low[is_open])
            high[is_open] = np.where(is_before, high[is_open], middle[is_open])
        found, least = np.full(len(keys), _UNKNOWN), np.full(len(keys), _MOST_APART_NS + 1)
        for at in (low - 1, low):
            rows = np.flatnonzero((first <= at) & (at < end) & (keys >= 0))
            apart = np.abs(self._sorted_times[at[rows]] - times[rows])
            is_nearer = apart < least[rows]
            rows = rows[is_nearer]
            found[rows], least[rows] = self._order[at[rows]], apart[is_nearer]
        return found


def _labels(columns: Columns) -> tuple[Ints, list[_Label]]:
    """Return the codes of client, broker and API, and what they stand for."""
    codes, labels = np.zeros(len(columns["client"]), np.int64), list[_Label]([()])
    for name in ("client", "broker", "api_key"):
        column = columns[name]
        assert isinstance(column, Coded)
        own = np.where(column.codes == NONE, len(column.values), column.codes)
        values = [*column.values, None]
        codes, found = distinct(codes * len(values) + own)
        pairs = [divmod(each, len(values)) for each in found.tolist()]
        labels = [(*labels[first], values[second]) for first, second in pairs]
    return codes, labels


def _values(column: Column) -> Ints:
    assert isinstance(column, Integers)
    return column.values


def _ends(columns: Columns) -> Ints:
    """Return the times of the ends of exchanges."""
    response = _values(columns["response_time_ns"])
    return np.where(response == NONE, _values(columns["request_time_ns"]), response)


def _taken(column: Column, rows: Ints) -> Column:
    """Return some rows of a column of the logs; null for none."""
    is_found = rows != _UNKNOWN
    values = np.full(len(rows), NONE)
    if isinstance(column, Coded):
        values[is_found] = column.codes[rows[is_found]]
        return Coded(values, column.values)
    assert isinstance(column, Milliseconds)
    values[is_found] = column.values_ns[rows[is_found]]
    return Milliseconds(values)


def _outside(broker: Column, latency: Column) -> Milliseconds:
    assert isinstance(broker, Milliseconds)
    assert isinstance(latency, Milliseconds)
    both = (broker.values_ns != NONE) & (latency.values_ns != NONE)
    return Milliseconds(np.where(both, latency.values_ns - broker.values_ns, NONE))
