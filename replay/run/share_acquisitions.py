"""
Records that members of share groups hold: only these may they acknowledge (KIP-932).

A coordinator gives each record to any member, so the target may give it to another one than the
captured broker did, or with an earlier response. An acknowledgement belongs to the record: it goes
out with the next request of the member that holds it. Offsets here are captured ones.

Source: Kafka, SharePartition.java, which refuses others with INVALID_RECORD_STATE.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby
from typing import Any, NamedTuple

from construct import Container

from cluster.conversion.change import Change
from cluster.fields.field_layout import Scope
from dissector.engine.exchanges.captured_exchange import CapturedExchange
from dissector.protocol.field_roles import Role
from dissector.protocol.messages import Message
from replay.compare.record_diff import data_offsets
from replay.mapping.id_map import IdMap
from replay.mapping.offset_map import PartitionOffsets
from replay.model.offset_ranges import Range, Ranges
from replay.model.outcome import HELD
from replay.sessions.retry_policy import RetryReason

_FETCH = "ShareFetch"
_APIS = frozenset({_FETCH, "ShareAcknowledge"})
_GAP, _RENEW = 0, 4
_FINAL_EPOCH = -1

_Log = tuple[str, str, int]
"""Captured group, captured topic, and partition."""


class _Acknowledged(NamedTuple):
    """Records with the same type of acknowledgement."""

    offsets: Range
    kind: int


class ShareAcquisitions:
    """
    The records that members hold in a pass.

    Args:
        ids: The id mapping.
    """

    def __init__(self, ids: IdMap) -> None:
        self._ids = ids
        self._held: dict[tuple[_Log, str], Ranges] = {}
        self._owed: defaultdict[_Log, list[_Acknowledged]] = defaultdict(list)
        self._delivered: defaultdict[_Log, Ranges] = defaultdict(Ranges)

    def assign(self, message: Message) -> list[Change]:
        """Replace acknowledgements by those of records that the member holds; return changes."""
        body = message.body
        if message.api not in _APIS or body is None:
            return []
        changes = []
        for topic, partition, log in self._partitions(body):
            wanted = list(_acknowledged(partition.acknowledgement_batches))
            sent = self._take(log, body.member_id, wanted)
            if sent != wanted:
                partition.acknowledgement_batches = [
                    Container(
                        first_offset=offsets.start,
                        last_offset=offsets.end - 1,
                        acknowledge_types=[kind],
                    )
                    for offsets, kind in sent
                ]
                path = f"topics[{topic}].partitions[{log[2]}].acknowledgement_batches"
                changes.append(Change(path, Role.OFFSET, _text(wanted), _text(sent), HELD))
        if body.share_session_epoch == _FINAL_EPOCH:  # the broker releases the others
            for place in [each for each in self._held if each[1] == body.member_id]:
                del self._held[place]
        return changes

    def _partitions(self, body: Container) -> Iterator[tuple[str, Container, _Log]]:
        for topic in body.topics:
            name = self._ids.topic_of(Scope(topic_id=topic.topic_id))
            for each in topic.partitions if name is not None else ():
                assert name is not None
                yield name, each, (body.group_id, name, each.partition_index)

    def _take(self, log: _Log, member: str, wanted: list[_Acknowledged]) -> list[_Acknowledged]:
        """Return what a member may acknowledge, of its own and of what others would have."""
        held = self._held.get((log, member), Ranges())
        known = self._ids.offsets.log(*log[1:])
        sent, owed = [], []
        for each in [*self._owed[log], *wanted]:
            parts = list(held.within(each.offsets.start, each.offsets.end))
            owed += [_Acknowledged(part, each.kind) for part in _without(each.offsets, parts)]
            for part in parts:
                sent += [_Acknowledged(run, each.kind) for run in _runs(known, part)]
                if each.kind != _RENEW:
                    held.remove(part.start, part.end)
        self._owed[log] = [each for each in owed if each.kind not in (_GAP, _RENEW)][-_MAX_OWED:]
        return sorted(sent)

    def record_response(self, asked: CapturedExchange, response: Container) -> None:
        """Record the records that the response to a ShareFetch gives to a member."""
        if asked.api != _FETCH or (body := asked.request_message().body) is None:
            return
        for topic in response.responses:
            scope = self._ids.captured_scope(Scope(topic_id=topic.topic_id))
            name = self._ids.topic_of(scope)
            for each in topic.partitions if name is not None else ():
                assert name is not None
                log = body.group_id, name, each.partition_index
                known = self._ids.offsets.log(name, each.partition_index)
                records = data_offsets(each.records, known)
                for acquired in each.acquired_records:
                    first = known.captured_offset(acquired.first_offset)
                    last = known.captured_offset(acquired.last_offset)
                    for part in records.within(first, last + 1):
                        self._held.setdefault((log, body.member_id), Ranges()).add(
                            part.start, part.end
                        )
                        self._delivered[log].add(part.start, part.end)

    def are_given(
        self, why: RetryReason, asked: CapturedExchange, captured: Message | None
    ) -> bool:
        """
        Return whether the target has given a group the records that a ShareFetch lacks.

        Args:
            why: The reason for which it would be repeated.
            asked: The captured exchange.
            captured: The captured response.
        """
        if asked.api != _FETCH or why is not RetryReason.NO_RECORDS:
            return False
        body = asked.request_message().body
        if captured is None or captured.body is None or body is None:
            return False
        group = body.group_id
        for topic in captured.body.responses:
            name = self._ids.topic_of(Scope(topic_id=topic.topic_id)) or ""
            for each in topic.partitions:
                given = self._delivered[group, name, each.partition_index]
                if len(data_offsets(each.records).without(given)):
                    return False
        return True


_MAX_OWED = 4096
"""Limit of acknowledgements of a log that wait for the member that holds their records."""


def _acknowledged(batches: list[Container]) -> Iterator[_Acknowledged]:
    """Yield the records of a request's acknowledgements, by types."""
    for batch in batches:
        types: list[int] = list(batch.acknowledge_types)
        if len(types) == 1:
            yield _Acknowledged(Range(batch.first_offset, batch.last_offset + 1), types[0])
            continue
        start = batch.first_offset
        for kind, run in groupby(types):
            count = len(list(run))
            yield _Acknowledged(Range(start, start + count), kind)
            start += count


def _without(offsets: Range, parts: list[Range]) -> Iterator[Range]:
    return Ranges(parts).missing(offsets.start, offsets.end)


def _runs(known: PartitionOffsets, part: Range) -> Iterator[Range]:
    """Yield the parts of a range that are consecutive on the target too."""
    start = part.start
    for known_part in [*known.live.record_ranges(part.start, part.end), Range(part.end, part.end)]:
        for each in (Range(start, known_part.start), known_part):
            if each.start < each.end:
                yield each
        start = known_part.end


def _text(acknowledged: list[_Acknowledged]) -> Any:
    return ", ".join(f"{offsets}: {kind}" for offsets, kind in acknowledged[:_MAX_SHOWN])


_MAX_SHOWN = 8
