"""Totals of groups and transactions: joins, leaves, generations, committed offsets."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import numpy as np

from advise.evidence.tally import Tally
from advise.evidence.window_rows import WindowRows
from dissector.capture.columns import unique
from dissector.engine.fields.message_fields import MessageFields
from dissector.engine.tables.exchange_table import ANSWERED, Ints

COMMIT, JOIN, HEARTBEAT, LEAVE, EPOCH_HEARTBEAT = 8, 11, 12, 13, 68
_INIT_PRODUCER, _ADD_PARTITIONS, _ADD_OFFSETS, _END, _PRODUCE = 22, 24, 25, 26, 0

_LEFT, _JOINED = -1, 0
"""Member epochs of a heartbeat that leaves or joins. Source: KIP-848."""

_OFFSET = "topics.partitions.committed_offset"
_PARTITION = "topics.partitions.partition_index"
_TOPICS = ("topics.name", "topics.topic_id")


class GroupTallies:
    """
    Totals of groups.

    Attributes:
        commits: Committed offsets by client, connection, group, topic and partition.
        commit_requests: OffsetCommit requests by client, connection and group.
        joins: Joins that succeeded, with the rebalance timeout.
        leaves: Leaves; `polls` are those whose reason names the poll interval.
        generations: Generations (classic) or member epochs (KIP-848) of groups.
        seen: Requests of members, of any kind.
        writes: The writes in transactions, by client, connection and transactional id.
        ends: Their ends.
    """

    def __init__(self) -> None:
        keys = ("client", "connection", "group")
        self.commits = Tally(
            (*keys, "topic", "partition"), ("count",), ("least_offset",), ("most_offset",)
        )
        self.commit_requests = Tally(keys, ("count",))
        self.joins = Tally((*keys, "is_epoch"), ("count",), most=("timeout_ms",))
        self.leaves = Tally(keys, ("count", "polls"))
        self.generations = Tally(
            (*keys, "is_epoch"), ("count",), ("least_generation",), ("most_generation",)
        )
        self.seen = Tally(keys, ("count",))
        self.writes = Tally(("client", "connection", "transaction"), ("count",))
        self.ends = Tally(("client", "connection", "transaction"), ("count",))

    def add(self, window: WindowRows) -> None:
        """Add a window."""
        self._add_commits(window)
        self._add_joins(window)
        self._add_heartbeats(window)
        self._add_leaves(window)
        self._add_transactions(window)

    def group_rows(self, window: WindowRows, groups: set[int]) -> Ints:
        """Return the exchanges of some groups in a window."""
        found = [np.zeros(0, np.int64)]
        for key in (COMMIT, JOIN, HEARTBEAT, LEAVE, 14, EPOCH_HEARTBEAT):
            fields = MessageFields(window.table, key, "request", ("group_id",))
            numbers = _texts(fields, fields.at("group_id"), window.names.groups)
            found.append(fields.rows[np.isin(numbers, list(groups))])
        return unique(np.concatenate(found))

    def _add_commits(self, window: WindowRows) -> None:
        table, names = window.table, window.names
        accepted = np.flatnonzero((table.status == ANSWERED) & ~window.failed)
        paths = ("group_id", *_TOPICS, _PARTITION, _OFFSET)
        fields = MessageFields(table, COMMIT, "request", paths, accepted)
        if not len(fields):
            return
        places = fields.at(_OFFSET)
        group = _texts(fields, fields.around(places, "group_id"), names.groups)
        topic = _texts(fields, fields.around(places, *_TOPICS), names.topics)
        offset, rows = fields.value(places), fields.row(places)
        ones = np.ones(len(places), np.int64)
        partition = fields.value(fields.around(places, _PARTITION))
        self.commits.add(
            window.of(
                rows,
                group=group,
                topic=topic,
                partition=partition,
                count=ones,
                least_offset=offset,
                most_offset=offset,
            )
        )
        at = fields.at("group_id")
        group = _texts(fields, at, names.groups)
        rows = fields.row(at)
        self.commit_requests.add(window.of(rows, group=group, count=np.ones(len(at), np.int64)))
        self.seen.add(window.of(rows, group=group, count=np.ones(len(at), np.int64)))

    def _add_joins(self, window: WindowRows) -> None:
        table = window.table
        accepted = np.flatnonzero((table.status == ANSWERED) & ~window.failed)
        asked = MessageFields(
            table, JOIN, "request", ("group_id", "rebalance_timeout_ms"), accepted
        )
        if not len(asked):
            return
        group = _texts(asked, asked.at("group_id"), window.names.groups)
        ones = np.ones(len(asked), np.int64)
        columns = {"group": group, "is_epoch": 0 * ones, "count": ones}
        timeout = asked.each("rebalance_timeout_ms", 0)
        self.joins.add(window.of(asked.rows, **columns, timeout_ms=timeout))
        self.seen.add(window.of(asked.rows, group=group, count=ones))
        answers = MessageFields(table, JOIN, "response", ("generation_id",), asked.rows)
        self._add_generations(
            window,
            answers.rows,
            _of_rows(asked.rows, group, answers.rows),
            answers.each("generation_id"),
            0,
        )

    def _add_heartbeats(self, window: WindowRows) -> None:
        table, names = window.table, window.names
        beats = MessageFields(table, HEARTBEAT, "request", ("group_id",))
        if len(beats):
            group = _texts(beats, beats.at("group_id"), names.groups)
            self.seen.add(window.of(beats.rows, group=group, count=np.ones(len(beats), np.int64)))
        accepted = np.flatnonzero((table.status == ANSWERED) & ~window.failed)
        paths = ("group_id", "member_epoch", "rebalance_timeout_ms")
        asked = MessageFields(table, EPOCH_HEARTBEAT, "request", paths, accepted)
        if not len(asked):
            return
        group = _texts(asked, asked.at("group_id"), names.groups)
        epoch, ones = asked.each("member_epoch", 1), np.ones(len(asked), np.int64)
        self.seen.add(window.of(asked.rows, group=group, count=ones))
        joined = np.flatnonzero(epoch == _JOINED)
        columns = {"group": group[joined], "is_epoch": ones[joined], "count": ones[joined]}
        timeout = asked.each("rebalance_timeout_ms", 0)[joined]
        self.joins.add(window.of(asked.rows[joined], **columns, timeout_ms=timeout))
        answers = MessageFields(table, EPOCH_HEARTBEAT, "response", ("member_epoch",), asked.rows)
        self._add_generations(
            window,
            answers.rows,
            _of_rows(asked.rows, group, answers.rows),
            answers.each("member_epoch"),
            1,
        )

    def _add_generations(
        self, window: WindowRows, rows: Ints, group: Ints, generation: Ints, is_epoch: int
    ) -> None:
        stays = (generation > 0) & (group >= 0)
        rows, group, generation = rows[stays], group[stays], generation[stays]
        self.generations.add(
            window.of(
                rows,
                group=group,
                is_epoch=np.full(len(rows), is_epoch),
                count=np.ones(len(rows), np.int64),
                least_generation=generation,
                most_generation=generation,
            )
        )

    def _add_leaves(self, window: WindowRows) -> None:
        self._add_epoch_leaves(window)
        fields = MessageFields(window.table, LEAVE, "request", ("group_id", "members.reason"))
        if not len(fields):
            return
        group = _texts(fields, fields.at("group_id"), window.names.groups)
        polls = np.zeros(len(fields), np.int64)
        places = fields.at("members.reason")
        codes, reasons = fields.texts(places)
        is_poll = np.array(["poll" in str(each) for each in reasons], np.bool_)
        if len(places):
            polls[np.searchsorted(fields.rows, fields.row(places[is_poll[codes]]))] = 1
        ones = np.ones(len(fields), np.int64)
        self.leaves.add(window.of(fields.rows, group=group, count=ones, polls=polls))

    def _add_epoch_leaves(self, window: WindowRows) -> None:
        """Add leaves of members by epoch, also those that come after the session has expired."""
        fields = MessageFields(
            window.table, EPOCH_HEARTBEAT, "request", ("group_id", "member_epoch")
        )
        if not len(fields):
            return
        left = np.flatnonzero(fields.each("member_epoch", 1) == _LEFT)
        group = _texts(fields, fields.at("group_id"), window.names.groups)[left]
        ones = np.ones(len(left), np.int64)
        self.leaves.add(window.of(fields.rows[left], group=group, count=ones, polls=0 * ones))

    def _add_transactions(self, window: WindowRows) -> None:
        """Add writes and ends; an InitProducerId ends what was open before it (KIP-98)."""
        parts = (
            (self.writes, _PRODUCE),
            (self.writes, _ADD_PARTITIONS),
            (self.writes, _ADD_OFFSETS),
            (self.ends, _END),
            (self.ends, _INIT_PRODUCER),
        )
        accepted = np.flatnonzero((window.table.status == ANSWERED) & ~window.failed)
        for tally, key in parts:
            path = "v3_and_below_transactional_id" if key == _ADD_PARTITIONS else "transactional_id"
            fields = MessageFields(window.table, key, "request", (path,), accepted)
            if not len(fields):
                continue
            places = fields.at(path)
            places = places[fields.value(places) > 0]
            if len(places):
                transaction = _texts(fields, places, window.names.transactions)
                ones = np.ones(len(places), np.int64)
                tally.add(window.of(fields.row(places), transaction=transaction, count=ones))


def _texts(fields: MessageFields, places: Ints, names: Any) -> Ints:
    """Return the numbers of the names at places; null is an empty text."""
    codes, texts = fields.texts(places)
    numbers: Ints = names.numbers(each if isinstance(each, UUID) else each or "" for each in texts)
    return numbers[codes]


def _of_rows(rows: Ints, values: Ints, wanted: Ints) -> Ints:
    """Return the values of some of the rows."""
    found: Ints = values[np.searchsorted(rows, wanted)]
    return found
