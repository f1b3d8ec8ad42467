"""
Screens: what a whole window proves of its exchanges in columns, before any of them is decoded.

A rule of one exchange may have a screen. Exchanges that pass it can't break the rule: they are
counted as judged, and the rule's function does not run. It runs for all others, so that findings
and their words have one implementation. A screen may let an exchange fail that keeps the rule; it
must never let one pass that breaks it.

Each screen implies that every captured message of the exchange is whole, of a known API and
version, and canonical: the bytes that Kafka's own writers produce, without unknown tags.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntFlag
from typing import NamedTuple, TypeAlias

from conform.registry.screened_columns import Bools, Ints, ScreenedPartitions, ScreenedRows
from dissector.protocol.schema import Field

INTEGERS = frozenset(("int8", "int16", "int32", "int64"))


class FieldPlace(NamedTuple):
    """
    A declared field in one version of a message.

    Attributes:
        declared: The field.
        siblings: All fields of its struct in this version.
        version: The version.
        is_item: Whether this is an item of an array of numbers or texts, not its count.
    """

    declared: Field
    siblings: Sequence[Field]
    version: int
    is_item: bool

    @property
    def type(self) -> str:
        """The type of the values here: of a number, a text, an array with its count."""
        return self.declared.type[2:] if self.is_item else self.declared.type


Limits: TypeAlias = tuple[int, int]
"""The lowest and the highest value of a field; of a text its length, of an array its count."""

ANY_LIMITS: Limits = (-(2**63), 2**63 - 1)

FieldLimits: TypeAlias = Callable[[FieldPlace], Limits | None]
"""Returns the limits within which the values of a field can't break a rule; None: any value."""


ItemKeys: TypeAlias = Callable[[FieldPlace], tuple[str, ...]]
"""
Returns the fields in which the items of a list must differ; a single empty name for the items
themselves, as of a list of numbers; nothing if any items are good.
"""


RowTest: TypeAlias = Callable[[ScreenedRows], Bools]

PartitionTest: TypeAlias = Callable[[ScreenedPartitions], Bools]
"""Returns the exchanges that pass a test of their partitions in Produce and Fetch messages."""

PartitionCount: TypeAlias = Callable[[ScreenedPartitions], Ints]
"""Returns how many cases a rule judges in each exchange that passes."""


class Shape(NamedTuple):
    """
    What an exchange consists of.

    Attributes:
        api_key: The API.
        version: Its version.
        request: Whether the version of the request is flexible; None without one.
        response: The same of the response.
    """

    api_key: int
    version: int
    request: bool | None
    response: bool | None

    @property
    def messages(self) -> int:
        """The number of messages."""
        return (self.request is not None) + (self.response is not None)


class BatchShape(NamedTuple):
    """
    What a plain record batch, or a plain message of a message set, is; see `plain_batches`.

    Attributes:
        api_key: The API of the message that carries it.
        magic: Its magic; below 2 it is a message.
        codec: The number of its codec.
        is_transactional: Whether it belongs to a transaction.
    """

    api_key: int
    magic: int
    codec: int
    is_transactional: bool

    @property
    def is_message(self) -> bool:
        """Whether it is a message, with any messages inside it."""
        return self.magic < 2


class HeaderFault(IntFlag):
    """What an otherwise plain batch may have in its header, and which rule judges it by itself."""

    BASE_OFFSET = 1 << 1
    PRODUCER = 1 << 2


NO_FAULT = HeaderFault(0)


PlainCount: TypeAlias = Callable[[BatchShape], int]
"""Returns the number of cases that a rule judges in a plain batch, which keeps it."""


def one_of_any(shape: BatchShape) -> int:
    """Count a case in a batch and in a message."""
    return 1


def one_of_batch(shape: BatchShape) -> int:
    """Count a case in a batch of magic 2."""
    return int(not shape.is_message)


def one_of_message(shape: BatchShape) -> int:
    """Count a case in a message."""
    return int(shape.is_message)


def none_of_batch(shape: BatchShape) -> int:
    """Count no case: the rule does not concern plain batches."""
    return 0


@dataclass(frozen=True, slots=True)
class Rest:
    """
    The state of a rule that is at rest as long as no exchange passing its screen changes it.

    The rule's function says when its state comes to rest, or leaves it, by `RuleStates.set_rest`;
    meanwhile the function runs for each exchange.

    Attributes:
        state: The class of the state.
        begins: Whether the state of a connection begins at rest; that of a capture does.
    """

    state: type
    begins: bool = True


@dataclass(frozen=True, slots=True)
class Screen:
    """
    The screen of a rule.

    Attributes:
        judged: The number of cases that the rule judges in an exchange that passes.
        limits: The limits of fields; an exchange passes if all values of its messages are inside.
        rows: A test of columns, which must pass too.
        keys: The keys of the items of lists; in each list they must differ, without null and zero
            ids.
        partitions: A test of the partitions in Produce and Fetch messages.
        topic_names: Whether all names of topics must be valid.
        rest: The state that must be at rest.
        in_session: Whether a Fetch in a session must continue it, with the offsets that follow
            (`keeps_session`); tests of partitions let it pass.
        count: The number of cases that depends on partitions, in addition to `judged`.
        unjudged: The number of cases in an answered exchange of an API that can't be judged if
            messages of the connection are missing; None: they are judged all the same.
    """

    judged: Callable[[Shape], int]
    limits: FieldLimits | None = None
    rows: RowTest | None = None
    keys: ItemKeys | None = None
    partitions: PartitionTest | None = None
    topic_names: bool = False
    rest: Rest | None = None
    in_session: bool = False
    count: PartitionCount | None = None
    unjudged: Callable[[int], int] | None = None

    @property
    def test(self) -> ScreenTest:
        """What must pass; screens with the same tests pass together."""
        return ScreenTest(
            self.limits,
            self.rows,
            self.keys,
            self.partitions,
            self.topic_names,
            self.rest,
            self.in_session,
        )


class ScreenTest(NamedTuple):
    """The tests of a screen, as there; none: that the messages are canonical is enough."""

    limits: FieldLimits | None = None
    rows: RowTest | None = None
    keys: ItemKeys | None = None
    partitions: PartitionTest | None = None
    topic_names: bool = False
    rest: Rest | None = None
    in_session: bool = False


def messages_judged(shape: Shape) -> int:
    """Count a case for each message."""
    return shape.messages


def request_judged(shape: Shape) -> int:
    """Count a case if there is a request."""
    return int(shape.request is not None)


def response_judged(shape: Shape) -> int:
    """Count a case if there is a response."""
    return int(shape.response is not None)


def one_judged(shape: Shape) -> int:
    """Count a case."""
    return 1


def none_judged(shape: Shape) -> int:
    """Count no case: the rule does not concern such exchanges."""
    return 0


def one_unjudged(api_key: int) -> int:
    """Count a case of each API."""
    return 1
