"""Fields of a message with their roles: the layout of one version, and places in a body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from dissector.protocol.schema import Field


class Role(StrEnum):
    """
    What a field means to a broker.

    `assigned`: partitions, of which a coordinator decides who gets which. `epoch`: any epoch
    between brokers. `group_epoch`: of a group, which only brokers count. `fetched_epoch`: the
    leader epoch of the newest record that a consumer has. `kind`: of what sort the name beside it
    is. `replicas`: on how many brokers a topic is; asked for, or left to the cluster. `plain`: the
    same for every broker.
    """

    PLAIN = "plain"
    BROKER_ID = "broker_id"
    EPOCH = "epoch"
    HOST = "host"
    PORT = "port"
    RACK = "rack"
    CLUSTER_ID = "cluster_id"
    DIRECTORY = "directory"
    INCARNATION = "incarnation"
    TOPIC = "topic"
    TOPIC_ID = "topic_id"
    TOPIC_PATTERN = "topic_pattern"
    PARTITION = "partition"
    REPLICAS = "replicas"
    ASSIGNED = "assigned"
    LEADER_EPOCH = "leader_epoch"
    FETCHED_EPOCH = "fetched_epoch"
    OFFSET = "offset"
    SIZE = "size"
    PRODUCER_ID = "producer_id"
    PRODUCER_EPOCH = "producer_epoch"
    SEQUENCE = "sequence"
    TRANSACTIONAL_ID = "transactional_id"
    TRANSACTIONAL_ID_PATTERN = "transactional_id_pattern"
    GROUP = "group"
    GROUP_EPOCH = "group_epoch"
    MEMBER = "member"
    INSTANCE = "instance"
    GENERATION = "generation"
    MEMBER_EPOCH = "member_epoch"
    EMBEDDED = "embedded"
    SESSION_ID = "session_id"
    SESSION_EPOCH = "session_epoch"
    TIMESTAMP = "timestamp"
    APPEND_TIME = "append_time"
    THROTTLE = "throttle"
    ERROR = "error"
    ERROR_MESSAGE = "error_message"
    RECORDS = "records"
    CLIENT_INSTANCE = "client_instance"
    SUBSCRIPTION = "subscription"
    TOKEN = "token"
    COORDINATOR_KEY = "coordinator_key"
    KIND = "kind"
    RESOURCE = "resource"
    CONFIG_NAME = "config_name"
    CONFIG_VALUE = "config_value"


@dataclass(frozen=True, slots=True)
class ValueField:
    """A field without children: its name, role and declaration."""

    name: str
    role: Role
    field: Field

    @property
    def is_list(self) -> bool:
        """Whether it is an array of plain values."""
        return self.field.type.startswith("[]")


@dataclass(frozen=True, slots=True)
class StructField:
    """A struct or an array of structs: its name, declaration and what is in it."""

    name: str
    field: Field
    layout: StructLayout

    @property
    def is_list(self) -> bool:
        """Whether it is an array."""
        return self.field.type == "[]struct"


@dataclass(frozen=True, slots=True)
class StructLayout:
    """
    The fields of one struct at one version.

    Attributes:
        version: That version, of the message.
        members: Those that are wanted, in wire order.
        scope: Attribute of `Scope` -> name of the field that sets it.
        keys: The fields that tell elements apart, where the struct is the element of an array.
    """

    version: int
    members: tuple[ValueField | StructField, ...]
    scope: tuple[tuple[str, str], ...]
    keys: tuple[ValueField, ...]


class Scope:
    """What encloses a field: the nearest topic, partition, group, ... around it; None without."""

    topic: str | None = None
    topic_id: UUID | None = None
    partition: int | None = None
    group: str | None = None
    member: str | None = None
    transactional_id: str | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    kind: int | None = None

    def __init__(self, outer: Scope | None = None, **given: Any) -> None:
        if outer is not None:
            self.__dict__.update(outer.__dict__)
        self.__dict__.update(given)

    def inside(self, node: StructLayout, body: Mapping[str, Any]) -> Scope:
        """Return the scope of the fields of a struct in this scope."""
        if not node.scope:
            return self
        scope = Scope(self)
        for name, field in node.scope:
            if field in body:
                scope.__dict__[name] = body[field]
        return scope


SCOPE_FIELDS = tuple(Scope.__annotations__)
"""The attributes of a scope."""


@dataclass(slots=True)
class FieldValue:
    """
    A field of a body, with what it means.

    Attributes:
        path: `topics[0].partitions[2].fetch_offset`.
        role: What it means.
        field: Its declaration.
        value: Its value; an element where the field is an array of plain values.
        parent: The container or list that holds the value.
        key: Its name, or its index, there.
        scope: What encloses it.
    """

    path: str
    role: Role
    field: Field
    value: Any
    parent: Any
    key: str | int
    scope: Scope

    def replace(self, value: Any) -> None:
        """Replace the value in the body."""
        self.parent[self.key] = value
