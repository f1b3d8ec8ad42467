"""
Events of groups: the contents of single messages, independent of earlier ones.

`group_messages` reads them, `group_states` applies them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias
from uuid import UUID

Topic: TypeAlias = str | UUID
"""Topic name, or topic id if the message has no name."""

Assignment: TypeAlias = tuple[tuple[Topic, tuple[int, ...]], ...]
"""Topics and partitions; connectors and tasks; subtopologies and tasks."""

Offsets: TypeAlias = Mapping[tuple[Topic, int], int | None]
"""Topic and partition -> committed offset; None where none is committed."""

CLASSIC, CONSUMER, SHARE, STREAMS = "classic", "consumer", "share", "streams"
"""Types of groups."""


@dataclass(frozen=True, slots=True)
class MemberFacts:
    """
    The state of a member in a message; None if not mentioned.

    Attributes:
        instance_id: Of a static member.
        client_id: Its client id.
        client: Its address.
        topics: Its subscription.
        assignment: Its assignment.
    """

    instance_id: str | None = None
    client_id: str | None = None
    client: str | None = None
    topics: tuple[str, ...] | None = None
    assignment: Assignment | None = None


@dataclass(frozen=True, slots=True)
class Joining:
    """A JoinGroup of a classic group that is unanswered or refused."""

    group_id: str


@dataclass(frozen=True, slots=True)
class Generation:
    """
    A group has a generation, or an epoch, and these members.

    Attributes:
        group_id: The group.
        kind: Its type.
        number: The generation; None if the message has none.
        members: Members by id.
        is_complete: Whether these are all members.
        state: The state that follows; None if it is not known.
        protocol_type: Of a classic group: `consumer`, `connect`.
        assignor: The assignor.
        leader: The member that assigns.
    """

    group_id: str
    kind: str
    number: int | None
    members: Mapping[str, MemberFacts]
    is_complete: bool = False
    state: str | None = None
    protocol_type: str | None = None
    assignor: str | None = None
    leader: str | None = None


@dataclass(frozen=True, slots=True)
class Left:
    """Members left a group, given by member id or instance id."""

    group_id: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Committed:
    """
    Offsets of a group are committed.

    Attributes:
        group_id: The group.
        offsets: The offsets.
        transactional_id: The transaction that has to be committed first, if one has.
    """

    group_id: str
    offsets: Offsets
    transactional_id: str | None = None


@dataclass(frozen=True, slots=True)
class TransactionEnded:
    """A transaction ended."""

    transactional_id: str
    is_committed: bool


GroupEvent: TypeAlias = Joining | Generation | Left | Committed | TransactionEnded
