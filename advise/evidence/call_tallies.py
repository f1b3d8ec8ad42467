"""Totals of all requests: by client, connection, API and version; their errors; throttle times."""

from __future__ import annotations

import numpy as np

from advise.evidence.tally import Tally
from advise.evidence.window_rows import WindowRows
from dissector.capture.columns import unique
from dissector.engine.fields.message_fields import MessageFields
from dissector.engine.reading.connection_ends import ConnectionEnds, ConnectionGaps
from dissector.engine.tables.exchange_table import ANSWERED, NONE, ORPHAN, UNANSWERED, Ints
from dissector.protocol.apis import KEYS
from dissector.protocol.broker_requests import BETWEEN_BROKERS

PRODUCE, FETCH, METADATA, ADD_PARTITIONS = 0, 1, 3, 24

_BROKER_KEYS = np.array([KEYS[name] for name in sorted(BETWEEN_BROKERS)], np.int64)

_THROTTLED = (PRODUCE, FETCH, 19, 20, 37)
"""Produce, Fetch, and the requests that controllers limit (KIP-599)."""

_WAITING = (11, 14)
"""JoinGroup and SyncGroup wait for other members."""

_LONG = (*_WAITING, FETCH, 78)
"""Answers to Fetch and ShareFetch come as late as the client allows."""

_FIRST_FOR_BROKERS = 4
"""First version of AddPartitionsToTxn that only brokers use (KIP-890)."""


class CallTallies:
    """
    Totals of requests.

    Attributes:
        calls: Requests by client, connection, broker, API and version. `bursts` of Produce: the
            number of requests if those within the linger were one.
        errors: Errors by client, connection, API, error and topic (of exchanges on one topic).
        throttles: Throttled answers.
        hung: Requests that had no answer, or none for so long, that they hang.
        of_brokers: Connections of brokers and controllers to each other.
    """

    def __init__(self, linger_ns: int, hang_ns: int) -> None:
        """
        Begin.

        Args:
            linger_ns: The time that Produce requests could wait for each other.
            hang_ns: The time without an answer after which a request hangs.
        """
        self._linger_ns, self._hang_ns = max(linger_ns, 1), hang_ns
        self._with_gaps: set[int] = set()
        self._now_ns = 0
        self.hung = Tally(("client", "connection", "broker", "api"), ("count",), most=("wait_ms",))
        keys = ("client", "connection", "broker", "api", "version")
        self.calls = Tally(keys, ("count", "failed", "bursts", "bytes"))
        self.errors = Tally(("client", "connection", "api", "error", "topic"), ("count",))
        self.throttles = Tally(
            ("client", "connection", "api"),
            ("count", "milliseconds"),
            most=("longest",),
        )
        self.of_brokers: set[int] = set()

    def add(self, window: WindowRows) -> None:
        """Add a window."""
        table = window.table
        self._find_brokers(window)
        rows = np.flatnonzero((table.api_key != NONE) & (table.status != ORPHAN) & ~table.token)
        sizes = np.maximum(table.request.size[rows], 0) + np.maximum(table.response.size[rows], 0)
        self.calls.add(
            window.of(
                rows,
                broker=window.broker[rows],
                api=table.api_key[rows],
                version=table.api_version[rows],
                count=np.ones(len(rows), np.int64),
                failed=window.failed[rows].astype(np.int64),
                bursts=self._bursts(window)[rows],
                bytes=sizes,
            )
        )
        self._add_errors(window, rows[window.failed[rows]])
        self._add_throttles(window)

    def add_hanging(self, window: WindowRows, ends: ConnectionEnds, gaps: ConnectionGaps) -> None:
        """
        Add the requests that hang: until their connection ended, until now, or for so long.

        An answer that comes after the client has given up is none. On connections with gaps the
        answer may be lost in the capture.
        """
        table = window.table
        self._with_gaps.update(gaps.connection.tolist())
        latest_ns = max(window.time_ns.max(), table.response.time_ns.max())
        self._now_ns = max(self._now_ns, int(latest_ns))
        late_ns = table.response.time_ns - window.time_ns
        is_late = (table.status == ANSWERED) & (late_ns >= self._hang_ns)
        chosen = (table.status == UNANSWERED) & ~np.isin(table.api_key, _WAITING)
        chosen |= is_late & ~np.isin(table.api_key, _LONG)
        chosen &= ~np.isin(table.connection, list(self._with_gaps))
        rows = np.flatnonzero(chosen)
        if not len(rows):
            return
        ended = dict(zip(ends.connection.tolist(), ends.time_ns.tolist(), strict=True))
        numbers, index = np.unique(table.connection[rows], return_inverse=True)
        end_ns = np.array([ended.get(each, self._now_ns) for each in numbers.tolist()], np.int64)
        wait_ns = end_ns[index.ravel()] - window.time_ns[rows]
        wait_ns = np.where(is_late[rows], late_ns[rows], wait_ns)
        hangs = wait_ns >= self._hang_ns
        rows, wait_ns = rows[hangs], wait_ns[hangs]
        self.hung.add(
            window.of(
                rows,
                broker=window.broker[rows],
                api=table.api_key[rows],
                count=np.ones(len(rows), np.int64),
                wait_ms=wait_ns // 1_000_000,
            )
        )

    def _bursts(self, window: WindowRows) -> Ints:
        """Return 1 for the first Produce request of each linger on a connection, 0 for others."""
        rows = np.flatnonzero(window.table.api_key == PRODUCE)
        found = np.zeros(len(window.table), np.int64)
        connection, slot = (
            window.table.connection[rows],
            window.time_ns[rows] // self._linger_ns,
        )
        order = np.lexsort((slot, connection))
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = (np.diff(connection[order]) != 0) | (np.diff(slot[order]) != 0)
        found[rows[order[is_first]]] = 1
        return found

    def _find_brokers(self, window: WindowRows) -> None:
        """Note the connections of brokers, by what only brokers send."""
        table = window.table
        is_theirs = np.isin(table.api_key, _BROKER_KEYS)
        is_theirs |= (table.api_key == ADD_PARTITIONS) & (table.api_version >= _FIRST_FOR_BROKERS)
        found = table.connection[is_theirs]
        paths = ("replica_id", "replica_state.replica_id")
        fetches = MessageFields(table, FETCH, "request", paths)
        for path in paths:
            is_replica = fetches.each(path, -1) >= 0
            found = np.concatenate((found, table.connection[fetches.rows[is_replica]]))
        self.of_brokers.update(unique(found).tolist())

    def _add_errors(self, window: WindowRows, rows: Ints) -> None:
        """Add the errors of exchanges; a topic only where the exchange is on one."""
        if not len(rows):
            return
        known, names = window.known, window.names
        lists = [names.errors.numbers(each) for each in known.error_lists]
        sizes = np.array([len(each) for each in lists], np.int64)
        codes = known.errors[rows]
        repeated = np.repeat(rows, sizes[codes])
        errors = np.concatenate([lists[code] for code in codes.tolist()])
        topics = np.array(
            [names.topics.number(each[0]) if len(each) == 1 else -1 for each in known.topic_lists],
            np.int64,
        )
        self.errors.add(
            window.of(
                repeated,
                api=window.table.api_key[repeated],
                error=errors,
                topic=topics[known.topics[repeated]],
                count=np.ones(len(repeated), np.int64),
            )
        )

    def _add_throttles(self, window: WindowRows) -> None:
        for key in _THROTTLED:
            fields = MessageFields(window.table, key, "response", ("throttle_time_ms",))
            if not len(fields):
                continue
            milliseconds = fields.each("throttle_time_ms", 0)
            chosen = milliseconds > 0
            rows, milliseconds = fields.rows[chosen], milliseconds[chosen]
            self.throttles.add(
                window.of(
                    rows,
                    api=np.full(len(rows), key),
                    count=np.ones(len(rows), np.int64),
                    milliseconds=milliseconds,
                    longest=milliseconds,
                )
            )
