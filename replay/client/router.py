"""
Which broker of the target a request goes to; requests for several are split, answers merged.

Source: who clients ask: Kafka's AdminApiHandlers and KafkaAdminClient (`nodeProvider`), Sender,
AbstractFetch, TransactionManager.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

from construct import Container

from dissector.protocol.apis import NAMES, api
from dissector.protocol.error_codes import error_code
from replay.client.cluster import Cluster, CoordinatorType
from replay.fields.field_layout import Role, StructField, StructLayout, ValueField
from replay.fields.roles import layout_of


class Destination(StrEnum):
    """
    Who is asked.

    `leader`: of each partition. `group`, `transaction`: the coordinator. `controller`. `resource`:
    the broker that a configuration belongs to. `home`: whoever the connection was made to.
    """

    LEADER = "leader"
    GROUP = "group"
    TRANSACTION = "transaction"
    CONTROLLER = "controller"
    RESOURCE = "resource"
    HOME = "home"


DESTINATIONS = {
    Destination.LEADER: (
        "Produce Fetch ListOffsets DeleteRecords OffsetForLeaderEpoch DescribeProducers ShareFetch "
        "ShareAcknowledge"
    ),
    Destination.GROUP: (
        "OffsetCommit OffsetFetch JoinGroup Heartbeat LeaveGroup SyncGroup DescribeGroups "
        "DeleteGroups OffsetDelete TxnOffsetCommit ConsumerGroupHeartbeat ConsumerGroupDescribe "
        "ShareGroupHeartbeat ShareGroupDescribe StreamsGroupHeartbeat StreamsGroupDescribe "
        "StreamsGroupTopologyDescriptionUpdate "
        "DescribeShareGroupOffsets AlterShareGroupOffsets DeleteShareGroupOffsets"
    ),
    Destination.TRANSACTION: (
        "InitProducerId AddPartitionsToTxn AddOffsetsToTxn EndTxn DescribeTransactions"
    ),
    Destination.CONTROLLER: (
        "CreateTopics DeleteTopics CreatePartitions ElectLeaders AlterPartitionReassignments "
        "ListPartitionReassignments AlterUserScramCredentials UpdateFeatures"
    ),
    Destination.RESOURCE: "DescribeConfigs AlterConfigs IncrementalAlterConfigs",
}
"""Way -> APIs; all others go home."""

_DESTINATION_OF = {name: way for way, names in DESTINATIONS.items() for name in names.split()}

_COORDINATORS = {
    Destination.GROUP: (Role.GROUP, CoordinatorType.GROUP),
    Destination.TRANSACTION: (Role.TRANSACTIONAL_ID, CoordinatorType.TRANSACTION),
}

_BROKER_RESOURCES = (4, 8)
"""Types of resource that belong to one broker: its configuration, and its loggers (KIP-412)."""

MISROUTED = frozenset(
    code
    for name in (
        "NOT_LEADER_OR_FOLLOWER",
        "NOT_COORDINATOR",
        "NOT_CONTROLLER",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
    )
    if (code := error_code(name)) is not None
)
"""Errors that say: what we know of the target is old."""


def destination_of(api_key: int) -> Destination:
    """Return who answers an API."""
    return _DESTINATION_OF.get(NAMES.get(api_key, ""), Destination.HOME)


async def route(
    api_key: int, version: int, body: Container, cluster: Cluster, home: int
) -> list[tuple[int, Container]]:
    """
    Tell which brokers get a request, and what of it.

    Args:
        api_key: Of the request.
        version: Of the request.
        body: In the target's names and ids.
        cluster: The target.
        home: The node that the connection stands for: it gets what anybody may answer, and what the
            target knows no broker for, which it will say itself.

    Returns:
        Node and body, in the order in which they are first needed; the body itself where one broker
        gets it all. There is always one at least.

    Raises:
        ReplayError: The target finds no coordinator.
    """
    home = home if home in cluster.brokers else cluster.any_node
    way = destination_of(api_key)
    if way is Destination.LEADER:
        layout = _topic_layouts(api_key, version)
        return _grouped_by_node(body, home, _split_by_leader(layout, body, cluster, home))
    if way is Destination.RESOURCE:
        return _grouped_by_node(body, home, _split_by_resource(body, cluster, home))
    if way is Destination.CONTROLLER:
        return [(cluster.controller if cluster.controller in cluster.brokers else home, body)]
    if way is Destination.HOME:
        return [(home, body)]
    role, kind = _COORDINATORS[way]
    name = _key_layout(api_key, version, role)
    nodes: dict[str | None, int] = {}
    for key in dict.fromkeys(key for key, _ in _keys_in(name, body)):
        found = None if key is None else await cluster.coordinator(kind, key)
        nodes[key] = home if found is None else found
    if not name.array:
        return [(nodes[body[name.field]], body)]
    return _grouped_by_node(
        body, home, ((nodes[key], name.array, element) for key, element in _keys_in(name, body))
    )


_Share = tuple[int, str, Any]
"""A node, the array of the body that its element belongs to, and the element."""


def _grouped_by_node(
    body: Container, home: int, shares: Iterable[_Share]
) -> list[tuple[int, Container]]:
    """Make a body for each node that has a share."""
    by_node: dict[int, dict[str, list[Any]]] = {}
    for node, array, element in shares:
        by_node.setdefault(node, {}).setdefault(array, []).append(element)
    if len(by_node) <= 1:
        return [(next(iter(by_node), home), body)]
    arrays = {array for parts in by_node.values() for array in parts}
    return [
        (node, Container(body, **{array: parts.get(array, []) for array in arrays}))
        for node, parts in by_node.items()
    ]


class _TopicLayout(NamedTuple):
    """
    An array of topics in a request.

    Attributes:
        array: Its field.
        name: The field of an element with the topic's name; empty where the version has none.
        topic_id: The field of an element with the topic's id; likewise.
        partitions: The field of an element with the partitions.
        partition: The field of such a partition with its number; empty where it is the number.
    """

    array: str
    name: str
    topic_id: str
    partitions: str
    partition: str


@cache
def _topic_layouts(api_key: int, version: int) -> tuple[_TopicLayout, ...]:
    return tuple(
        _TopicLayout(
            topics.name, scope.get("topic", ""), scope.get("topic_id", ""), inner.name, number
        )
        for topics in _layout(api_key, version).members
        if isinstance(topics, StructField) and topics.is_list
        for scope in [dict(topics.layout.scope)]
        for inner in topics.layout.members
        if (number := _partition_field(inner)) is not None
    )


def _partition_field(member: ValueField | StructField) -> str | None:
    """Return the field with the partition in the elements of an array; None where it has none."""
    if not member.is_list:
        return None
    if isinstance(member, ValueField):
        return "" if member.role is Role.PARTITION else None
    return dict(member.layout.scope).get("partition")


def _split_by_leader(
    layout: tuple[_TopicLayout, ...], body: Container, cluster: Cluster, home: int
) -> Iterator[_Share]:
    for at in layout:
        for topic in body[at.array] or ():
            name = topic[at.name] if at.name else cluster.topic_name(topic[at.topic_id])
            by_node: dict[int, list[Any]] = {}
            for each in topic[at.partitions] or ():
                number = each[at.partition] if at.partition else each
                leader = cluster.leader(name, number) if name else None
                by_node.setdefault(home if leader is None else leader.node, []).append(each)
            if len(by_node) == 1:
                yield next(iter(by_node)), at.array, topic
                continue
            for node, partitions in (by_node or {home: []}).items():
                yield node, at.array, Container(topic, **{at.partitions: partitions})


class _KeyLayout(NamedTuple):
    """
    Where a request names its group, or its transactional id.

    Attributes:
        array: The field with several of them; empty where there is one.
        field: The field of the body or of an element; empty where elements are plain.
    """

    array: str
    field: str


@cache
def _key_layout(api_key: int, version: int, role: Role) -> _KeyLayout:
    for member in _layout(api_key, version).members:
        if isinstance(member, ValueField):
            if member.role is role:
                return (
                    _KeyLayout(member.name, "") if member.is_list else _KeyLayout("", member.name)
                )
        elif member.is_list and role.value in dict(member.layout.scope):
            return _KeyLayout(member.name, dict(member.layout.scope)[role.value])
    raise AssertionError(f"{NAMES[api_key]} v{version} has no {role}")


def _keys_in(name: _KeyLayout, body: Container) -> Iterator[tuple[str | None, Any]]:
    """Yield what is named, and the element that names it."""
    for element in (body[name.array] or ()) if name.array else (body,):
        yield (element[name.field] if name.field else element), element


def _split_by_resource(body: Container, cluster: Cluster, home: int) -> Iterator[_Share]:
    for each in body.resources:
        name = each.resource_name
        owned = each.resource_type in _BROKER_RESOURCES and name.isdecimal()
        node = int(name) if owned else home
        yield (node if node in cluster.brokers else home), "resources", each


def _layout(api_key: int, version: int) -> StructLayout:
    found = api(api_key)
    assert found is not None
    return layout_of(found.request, version)
