"""Answers about committed offsets: the captured offsets, until clients commit others."""

from __future__ import annotations

from construct import Container

from dissector.protocol.error_codes import error_code
from serve.answers.client_request import ClientRequest
from serve.answers.generation_groups import ClassicGroups, check_group
from serve.answers.served_state import ServedState
from serve.recording.served_recording import GroupPartition

_UNSTABLE = error_code("UNSTABLE_OFFSET_COMMIT")

_Committed = tuple[int, int, str]
"""Offset, leader epoch, metadata."""


class CommittedOffsets:
    """Answers OffsetCommit, TxnOffsetCommit and OffsetFetch."""

    def __init__(self, state: ServedState, groups: ClassicGroups) -> None:
        self._state = state
        self._groups = groups
        self._committed: dict[GroupPartition, _Committed] = {}
        self._pending: dict[int, dict[GroupPartition, _Committed]] = {}

    async def commit(self, request: ClientRequest) -> Container:
        """Store offsets of a group, unless the member is fenced."""
        body = request.body
        check_group(self._state, body.group_id)
        error = 0
        if body.member_id:
            error = self._groups.error_of(
                body.group_id, body.member_id, body.get("group_instance_id")
            )
        if not error:
            self._committed |= _offsets_of(body)
        return _answer(body, error)

    async def commit_in_transaction(self, request: ClientRequest) -> Container:
        """Keep offsets until the transaction ends."""
        body = request.body
        self._pending.setdefault(body.producer_id, {}).update(_offsets_of(body))
        return _answer(body, 0)

    def end_transaction(self, producer_id: int, *, is_committed: bool) -> None:
        """Store or discard the offsets of a transaction."""
        pending = self._pending.pop(producer_id, {})
        if is_committed:
            self._committed |= pending

    async def fetch(self, request: ClientRequest) -> Container:
        """Return the committed offsets of groups."""
        for each in request.body.groups:
            check_group(self._state, each.group_id)
        is_stable = bool(request.body.get("require_stable"))
        groups = [self._group(each, is_stable) for each in request.body.groups]
        return Container(groups=groups, error_code=0)

    def _group(self, wanted: Container, is_stable: bool) -> Container:
        group = wanted.group_id
        if wanted.topics is None:
            known = self._committed.keys() | self._state.recording.committed.keys()
            places = sorted((topic, part) for name, topic, part in known if name == group)
        else:
            places = [
                (each.name, part) for each in wanted.topics for part in each.partition_indexes
            ]
        topics: dict[str, list[Container]] = {}
        for topic, part in places:
            found = self._offset((group, topic, part))
            if is_stable and any((group, topic, part) in each for each in self._pending.values()):
                found.error_code = _UNSTABLE
            if wanted.topics is not None or found.committed_offset >= 0:
                topics.setdefault(topic, []).append(found)
        return Container(
            group_id=group,
            topics=[Container(name=name, partitions=parts) for name, parts in topics.items()],
            error_code=0,
        )

    def _offset(self, place: GroupPartition) -> Container:
        committed = self._committed.get(place)
        history = self._state.recording.committed.get(place)
        if committed is None and history is not None:
            found = history.current()
            history.advance(self._state.reached_ns, is_failed=bool(found.error_code))
            return Container(found)
        offset, epoch, metadata = committed or (-1, -1, "")
        return Container(
            partition_index=place[2],
            committed_offset=offset,
            committed_leader_epoch=epoch,
            metadata=metadata,
            error_code=0,
        )


def _offsets_of(body: Container) -> dict[GroupPartition, _Committed]:
    return {
        (body.group_id, topic.name, each.partition_index): (
            each.committed_offset,
            each.get("committed_leader_epoch", -1),
            each.committed_metadata or "",
        )
        for topic in body.topics
        for each in topic.partitions
    }


def _answer(body: Container, error: int) -> Container:
    topics = [
        Container(
            name=topic.name,
            partitions=[
                Container(partition_index=each.partition_index, error_code=error)
                for each in topic.partitions
            ],
        )
        for topic in body.topics
    ]
    return Container(topics=topics)
