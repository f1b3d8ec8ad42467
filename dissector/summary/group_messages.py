"""
Reads the messages of groups: each exchange gives a sequence of events.

Classic groups (JoinGroup, SyncGroup, Heartbeat, LeaveGroup), groups with a heartbeat of their own
(consumer, share and streams groups), their offsets, and their descriptions.

Source: KIP-62 (rebalances), KIP-345 (static members), KIP-447 (offsets in transactions), KIP-848
(consumer groups), KIP-932 (share groups), KIP-1071 (streams groups).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from dissector.engine.exchanges.exchange import Exchange
from dissector.protocol.embedded.membership.group_members import MemberField, read_member
from dissector.protocol.undeclared_nulls import readable_body
from dissector.summary.group_events import (
    CLASSIC,
    CONSUMER,
    SHARE,
    STREAMS,
    Assignment,
    Committed,
    Generation,
    GroupEvent,
    Joining,
    Left,
    MemberFacts,
    Offsets,
    Topic,
    TransactionEnded,
)

_LEAVING_EPOCHS = (-1, -2)
"""Member epochs of a heartbeat that leaves the group. Source: KIP-848."""


def group_events(exchange: Exchange) -> Iterator[GroupEvent]:
    """Yield the events of an exchange of one of `GROUP_APIS`; none if a body is unreadable."""
    read = _READERS.get(exchange.api_key) if exchange.api_key is not None else None
    request = readable_body(exchange.request) if read is not None else None
    if read is not None and request is not None:
        yield from read(exchange, request, readable_body(exchange.response))


def _join(exchange: Exchange, request: Any, response: Any) -> Iterator[GroupEvent]:
    if response is None or response.error_code:
        yield Joining(request.group_id)
        return
    kind = request.protocol_type
    own = MemberFacts(
        instance_id=request.get("group_instance_id"),
        client_id=exchange.client_id,
        client=_host(exchange),
        topics=_subscription([each.metadata for each in request.protocols or ()], kind),
    )
    members = {
        each.member_id: MemberFacts(
            instance_id=each.get("group_instance_id"), topics=_subscription([each.metadata], kind)
        )
        for each in response.members or ()
    }
    yield Generation(
        request.group_id,
        CLASSIC,
        response.generation_id,
        {**members, response.member_id: own},
        is_complete=bool(members),
        state="CompletingRebalance",
        protocol_type=kind,
        assignor=response.protocol_name,
        leader=response.leader,
    )


def _sync(exchange: Exchange, request: Any, response: Any) -> Iterator[GroupEvent]:
    if response is None or response.error_code:
        return
    kind = response.get("protocol_type")
    members = {
        each.member_id: MemberFacts(assignment=_assignment(each.assignment, kind))
        for each in request.assignments or ()
    }
    own = MemberFacts(
        instance_id=request.get("group_instance_id"),
        client_id=exchange.client_id,
        client=_host(exchange),
        assignment=_assignment(response.assignment, kind),
    )
    yield Generation(
        request.group_id,
        CLASSIC,
        request.generation_id,
        {**members, request.member_id: own},
        state="Stable",
        protocol_type=kind,
        assignor=response.get("protocol_name"),
    )


def _beat(exchange: Exchange, request: Any, response: Any) -> Iterator[GroupEvent]:
    if response is not None and not response.error_code:
        own = MemberFacts(
            instance_id=request.get("group_instance_id"),
            client_id=exchange.client_id,
            client=_host(exchange),
        )
        yield Generation(request.group_id, CLASSIC, request.generation_id, {request.member_id: own})


def _leave(exchange: Exchange, request: Any, response: Any) -> Iterator[GroupEvent]:
    if response is not None and not response.error_code:
        if "members" in request:
            left = tuple(each.member_id or each.group_instance_id for each in request.members)
        else:
            left = (request.member_id,)
        yield Left(request.group_id, left)


def _own_heartbeat(kind: str) -> _Reader:
    """Return a reader of the heartbeats of a type of groups."""

    def read(exchange: Exchange, request: Any, response: Any) -> Iterator[GroupEvent]:
        if response is None or response.error_code:
            return
        member_id = response.member_id or request.member_id
        if request.member_epoch in _LEAVING_EPOCHS:
            yield Left(request.group_id, (member_id,))
            return
        topics = request.get("subscribed_topic_names")
        own = MemberFacts(
            instance_id=request.get("instance_id"),
            client_id=exchange.client_id,
            client=_host(exchange),
            topics=None if topics is None else tuple(topics),
            assignment=_heartbeat_assignment(response),
        )
        yield Generation(
            request.group_id,
            kind,
            response.member_epoch,
            {member_id: own},
            state="Stable",
            assignor=request.get("server_assignor"),
        )

    return read


def _heartbeat_assignment(response: Any) -> Assignment | None:
    """Return the new assignment in a heartbeat; None if unchanged."""
    if "active_tasks" in response:
        tasks = response.active_tasks
        return None if tasks is None else _pairs(tasks, "subtopology_id", "partitions")
    return _topic_partitions(response.assignment)


def _describe_classic(exchange: Exchange, request: Any, response: Any) -> Iterator[GroupEvent]:
    for each in (response.groups or ()) if response is not None else ():
        if each.error_code or each.group_state == "Dead":
            continue
        kind = each.protocol_type
        members = {
            member.member_id: MemberFacts(
                instance_id=member.get("group_instance_id"),
                client_id=member.client_id,
                client=member.client_host.removeprefix("/"),
                topics=_subscription([member.member_metadata], kind),
                assignment=_assignment(member.member_assignment, kind),
            )
            for member in each.members
        }
        yield Generation(
            each.group_id,
            CLASSIC,
            None,
            members,
            is_complete=True,
            state=each.group_state,
            protocol_type=kind,
            assignor=each.protocol_data or None,
        )


def _describe(kind: str) -> _Reader:
    """Return a reader of the descriptions of a type of groups."""

    def read(exchange: Exchange, request: Any, response: Any) -> Iterator[GroupEvent]:
        for each in (response.groups or ()) if response is not None else ():
            if not each.error_code:
                members = {member.member_id: _described(member) for member in each.members}
                yield Generation(
                    each.group_id,
                    kind,
                    each.group_epoch,
                    members,
                    is_complete=True,
                    state=each.group_state,
                    assignor=each.get("assignor_name"),
                )

    return read


def _described(member: Any) -> MemberFacts:
    topics = member.get("subscribed_topic_names")
    tasks = member.assignment.get("active_tasks")
    return MemberFacts(
        instance_id=member.get("instance_id"),
        client_id=member.client_id,
        client=member.client_host.removeprefix("/"),
        topics=None if topics is None else tuple(topics),
        assignment=_topic_partitions(member.assignment)
        if tasks is None
        else _pairs(tasks, "subtopology_id", "partitions"),
    )


def _commit(exchange: Exchange, request: Any, response: Any) -> Iterator[GroupEvent]:
    if response is None:
        return
    refused = {
        (_topic(topic), each.partition_index)
        for topic in response.topics or ()
        for each in topic.partitions
        if each.error_code
    }
    offsets = {
        (_topic(topic), each.partition_index): each.committed_offset
        for topic in request.topics or ()
        for each in topic.partitions
        if (_topic(topic), each.partition_index) not in refused
    }
    if offsets:
        yield Committed(request.group_id, offsets, request.get("transactional_id"))


def _fetch_offsets(exchange: Exchange, request: Any, response: Any) -> Iterator[GroupEvent]:
    if response is None or response.get("error_code"):
        return
    if "groups" in response:
        groups = [(each.group_id, each.topics) for each in response.groups if not each.error_code]
    else:
        groups = [(request.group_id, response.topics)]
    for group_id, topics in groups:
        yield Committed(group_id, _known_offsets(topics or ()))


def _known_offsets(topics: Iterable[Any]) -> Offsets:
    return {
        (_topic(topic), each.partition_index): (
            each.committed_offset if each.committed_offset >= 0 else None
        )
        for topic in topics
        for each in topic.partitions
        if not each.error_code
    }


def _end_transaction(exchange: Exchange, request: Any, response: Any) -> Iterator[GroupEvent]:
    if response is not None and not response.error_code:
        yield TransactionEnded(request.transactional_id, bool(request.committed))


_Reader: TypeAlias = Callable[[Exchange, Any, Any], Iterator[GroupEvent]]

HEARTBEATS: Mapping[int, _Reader] = {
    12: _beat,
    68: _own_heartbeat(CONSUMER),
    76: _own_heartbeat(SHARE),
    88: _own_heartbeat(STREAMS),
}
"""APIs with messages that repeat without news."""

_READERS: Mapping[int, _Reader] = {
    **HEARTBEATS,
    8: _commit,
    9: _fetch_offsets,
    11: _join,
    13: _leave,
    14: _sync,
    15: _describe_classic,
    26: _end_transaction,
    28: _commit,
    69: _describe(CONSUMER),
    77: _describe(SHARE),
    89: _describe(STREAMS),
}

GROUP_APIS = frozenset(_READERS)
"""Keys of APIs with events."""

OFFSET_APIS = frozenset(
    key for key, read in _READERS.items() if read in (_commit, _fetch_offsets, _end_transaction)
)
"""Keys of APIs that show committed offsets."""


def _topic(item: Any) -> Topic:
    """Return the name of a topic, or its id in the versions without a name."""
    name: Topic | None = item.get("name")
    return item.topic_id if name is None else name


def _host(exchange: Exchange) -> str:
    return exchange.client.rpartition(":")[0]


def _subscription(metadata: Iterable[bytes], kind: str | None) -> tuple[str, ...] | None:
    """Return the topics of a subscription; None if unreadable."""
    for data in metadata:
        value = _embedded(data, "metadata", kind)
        if value is not None and "topics" in value:
            return tuple(value.topics)
    return None


def _assignment(data: bytes, kind: str | None) -> Assignment | None:
    """Return the assignment of a member of a classic group; None if unreadable."""
    if not data:
        return ()
    value = _embedded(data, "assignment", kind)
    if value is None:
        return None
    if "assigned_partitions" in value:
        return _pairs(value.assigned_partitions, "topic", "partitions")
    return _pairs(value.assignment or (), "connector", "tasks")


def _embedded(data: bytes, part: MemberField, kind: str | None) -> Any:
    found = read_member(part, data, part, kind)
    return None if found is None else found.value


def _topic_partitions(assignment: Any) -> Assignment | None:
    """Return an assignment by topic ids; None if unchanged."""
    if assignment is None:
        return None
    return _pairs(assignment.topic_partitions, "topic_id", "partitions")


def _pairs(items: Iterable[Any], name: str, numbers: str) -> Assignment:
    return tuple((item[name], tuple(item[numbers])) for item in items)
