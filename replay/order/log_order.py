"""
Log dependencies: which steps must follow the append of records, by captured partition offsets.

Appends to a log keep their order by offset, even where requests overlapped, and records are
appended before they are fetched. An append without a captured offset, as of a Produce with acks =
0, takes its place by the time of its request. A read of, or a request for, offsets after a
transaction's records follows the end of that transaction: the last stable offset stops before an
open transaction, and its marker takes an offset even if no captured response contains it (KIP-98).
A topic is deleted after all that was read from its logs, or appended.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from replay.order.read_write_sets import UNKNOWN_OFFSET, Log
from replay.order.topic_lives import TopicLife

_Ints = NDArray[np.int64]
_Numbers = NDArray[np.int32]

LogTopic = str | UUID | TopicLife
NameTopic = Callable[[UUID], str | TopicLife | None]
"""Returns the topic of a topic id: its name, or a later life of it."""

_MAX_OFFSET = (1 << 63) - 1

_LOOK_BACK = 64
"""
Number of rows searched for an earlier step: overlapping requests to a partition may be captured in
another order than they were served.
"""


class _Rows:
    """Log, offset and exchange, a column each."""

    def __init__(self) -> None:
        self.logs = array("i")
        self.offsets = array("q")
        self.exchanges = array("i")

    def add(self, log: int, offset: int, exchange: int) -> None:
        self.logs.append(log)
        # The sum of a captured offset and a count may exceed the 64 bits of an offset.
        is_too_large = not -_MAX_OFFSET <= offset <= _MAX_OFFSET
        self.offsets.append(max(-_MAX_OFFSET, min(offset, _MAX_OFFSET)) if is_too_large else offset)
        self.exchanges.append(exchange)


class LogOrder:
    """
    Appends and fetches of exchanges, as columns of log, offset and exchange number.

    Attributes:
        numbers: Partition -> number of its log.
        deletions: Topic, or life of it -> the exchange that ended it.
    """

    def __init__(self) -> None:
        self.numbers: dict[Log, int] = {}
        self.deletions: dict[LogTopic, int] = {}
        self._appends = _Rows()
        self._reads = _Rows()
        self._transaction_ends = _Rows()

    def number(self, log: Log) -> int:
        """Return the number of a log, a new one on first use."""
        return self.numbers.setdefault(log, len(self.numbers))

    def record_append(self, log: int, offset: int, exchange: int) -> None:
        """Record the offset, or `UNKNOWN_OFFSET`, of the first record that an exchange appended."""
        self._appends.add(log, offset, exchange)

    def record_read(self, log: int, offset: int, exchange: int) -> None:
        """Record the last offset that must be in the log for an exchange's response."""
        self._reads.add(log, offset, exchange)

    def record_transaction_end(self, log: int, offset: int, exchange: int) -> None:
        """Record the offset of the first record of a transaction that an exchange ended."""
        self._transaction_ends.add(log, offset, exchange)

    def writers(self, log: Log) -> list[int]:
        """Return the exchanges with responses that prove an append to a partition."""
        rows = np.frombuffer(self._appends.logs, np.int32) == self.numbers.get(log, -1)
        rows &= np.frombuffer(self._appends.offsets, np.int64) != UNKNOWN_OFFSET
        return list(map(int, np.frombuffer(self._appends.exchanges, np.int32)[rows]))

    def append_orders(self, name: NameTopic) -> Iterator[_Ints]:
        """
        Yield for each log the exchanges that appended to it, in the order of their offsets.

        Args:
            name: Returns the name of a topic id.
        """
        exchanges = np.frombuffer(self._appends.exchanges, np.int32)
        each_itself = np.arange(exchanges.max(initial=-1) + 1, dtype=np.int32)
        deleted = self._deleted_logs(name)
        for log, (offset, exchange) in _by_log(*self._rows(self._appends, each_itself, name)):
            is_known = offset != UNKNOWN_OFFSET
            in_order = np.argsort(offset[is_known], kind="stable")
            ends = [deleted[log]] if log in deleted else []
            yield np.concatenate((exchange[is_known][in_order], ends)).astype(np.int64)

    def dependencies(
        self, step_of: _Numbers, connections: _Numbers, name: NameTopic
    ) -> Iterator[tuple[int, int]]:
        """
        Yield pairs of a step and a step that must be answered before it.

        Appends of one connection need no such order: they go to the leader in the order sent.

        Args:
            step_of: For each exchange its step; -1 if it is not sent.
            connections: For each step its connection.
            name: Returns the name of a topic id.
        """
        deleted = self._deleted_logs(name)
        seen = dict(_by_log(*self._rows(self._reads, step_of, name)))
        for log, (offset, step) in _by_log(*self._rows(self._transaction_ends, step_of, name)):
            if log in seen:
                order = np.argsort(offset, kind="stable")
                ends = offset[order], step[order], connections[step[order]]
                yield from _transaction_end_dependencies(*ends, *seen[log])
        for log, (offset, step) in _by_log(*self._rows(self._appends, step_of, name)):
            offset, step = _in_log_order(offset, step)
            before = _previous_steps(step)
            waits = (before >= 0) & (connections[before] != connections[step])
            yield from zip(step[waits].tolist(), before[waits].tolist(), strict=True)
            if log in seen:
                yield from _read_dependencies(offset, step, *seen[log])
            if log in deleted:
                users = np.concatenate((step, seen[log][1])) if log in seen else step
                yield from _deletion_dependencies(int(step_of[deleted[log]]), users, connections)

    def _deleted_logs(self, name: NameTopic) -> dict[int, int]:
        """Return the logs of deleted topics, each with the exchange that deleted it."""
        topics = {at: _by_topic_name(each, name)[0] for each, at in self.numbers.items()}
        found = self.deletions
        return {at: found[topic] for at, topic in topics.items() if topic in found}

    def _rows(
        self, rows: _Rows, step_of: _Numbers, name: NameTopic
    ) -> tuple[_Numbers, _Ints, _Numbers]:
        """Return log, offset and step of the rows that are sent; topic id and name share a log."""
        log, offset = np.frombuffer(rows.logs, np.int32), np.frombuffer(rows.offsets, np.int64)
        step = step_of[np.frombuffer(rows.exchanges, np.int32)]
        same = [
            self.numbers.get(_by_topic_name(each, name), at) for each, at in self.numbers.items()
        ]
        is_sent = step >= 0
        return np.array(same, np.int32)[log[is_sent]], offset[is_sent], step[is_sent]


def _by_log(
    log: _Numbers, offset: _Ints, step: _Numbers
) -> Iterator[tuple[int, tuple[_Ints, _Numbers]]]:
    """Yield the offsets and steps of each log."""
    order = np.argsort(log, kind="stable")
    numbers, starts = np.unique(log[order], return_index=True)
    for number, start, end in zip(numbers.tolist(), starts, [*starts[1:], len(log)], strict=False):
        rows = order[start:end]
        yield number, (offset[rows], step[rows])


def _in_log_order(offset: _Ints, step: _Numbers) -> tuple[_Ints, _Numbers]:
    """Sort appends by offset; an unknown one follows all that were requested before it."""
    by_step = np.argsort(step, kind="stable")
    offset, step = offset[by_step], step[by_step]
    offset = np.where(offset == UNKNOWN_OFFSET, np.maximum.accumulate(offset), offset)
    order = np.argsort(offset, kind="stable")
    return offset[order], step[order]


def _previous_steps(step: _Numbers) -> _Numbers:
    """Return for each append to a log the nearest preceding one of a lower step; or -1."""
    before: _Numbers = np.full(len(step), -1, np.int32)
    follows = step[:-1] < step[1:]
    before[1:][follows] = step[:-1][follows]
    steps = step.tolist() if not follows.all() else []
    for at in (np.flatnonzero(~follows) + 1).tolist():
        before[at] = _nearest_earlier_step(steps, at, steps[at])
    return before


def _read_dependencies(
    offset: _Ints, step: _Numbers, last: _Ints, reader: _Numbers
) -> Iterator[tuple[int, int]]:
    """Yield the steps that read a log, each with the append of the last record read."""
    ends = np.searchsorted(offset, last, "right")
    nearest = np.concatenate((step, [-1]))[ends - 1]  # the last one, -1, where the log begins
    is_earlier = nearest < reader
    found = is_earlier & (nearest >= 0)
    yield from zip(reader[found].tolist(), nearest[found].tolist(), strict=True)
    steps = step.tolist()
    for end, each in zip(ends[~is_earlier].tolist(), reader[~is_earlier].tolist(), strict=True):
        before = _nearest_earlier_step(steps, end, each)
        if before >= 0:
            yield each, before


def _transaction_end_dependencies(
    offset: _Ints, step: _Numbers, connection: _Numbers, last: _Ints, reader: _Numbers
) -> Iterator[tuple[int, int]]:
    """Yield reading steps, each with the ends of transactions that begin below its offset."""
    ends = np.searchsorted(offset, last, "right").tolist()
    steps, connections = step.tolist(), connection.tolist()
    enders = len(set(connections))
    for end, each in zip(ends, reader.tolist(), strict=True):
        # A producer's transactions end one after the other: the newest is enough.
        found: set[int] = set()
        for at in range(end - 1, max(0, end - _LOOK_BACK) - 1, -1):
            if steps[at] < each and connections[at] not in found:
                found.add(connections[at])
                yield each, steps[at]
                if len(found) == enders:
                    break


def _deletion_dependencies(
    deletion: int, users: _Numbers, connections: _Numbers
) -> Iterator[tuple[int, int]]:
    """Yield the step that deletes a log, with the newest earlier step of each connection."""
    newest: dict[int, int] = {}
    for step in users[users < deletion].tolist():
        newest[connections[step]] = max(step, newest.get(connections[step], step))
    for connection, step in newest.items():
        if connection != connections[deletion]:
            yield deletion, step


def _nearest_earlier_step(steps: list[int], at: int, step: int) -> int:
    """Return the nearest step before an index of a log that is lower than a given step; or -1."""
    for each in range(at - 1, max(0, at - _LOOK_BACK) - 1, -1):
        if steps[each] < step:
            return steps[each]
    return -1


def _by_topic_name(log: Log, name: NameTopic) -> Log:
    topic, partition = log
    return ((name(topic) or topic) if isinstance(topic, UUID) else topic), partition
