"""E: encoding of the primitive types."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from uuid import UUID
from weakref import ref

from conform.evidence.canonical_form import Fault, faults, is_canonical
from conform.evidence.observation import Turn, lost_bytes
from conform.evidence.reporter import Say
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from dissector.protocol.facts import NO_ID
from dissector.protocol.messages import Message

_SIDES = {"request": Side.CLIENT, "response": Side.BROKER}


class _Look:
    """
    Encoding faults of one message.

    Attributes:
        message: The message.
        flexible: Whether its version has tagged fields.
        found: The encoding faults.
        lacks: Why the message can't be checked to its end; empty if it was.
    """

    __slots__ = ("flexible", "found", "lacks", "message")

    def __init__(self, turn: Turn, message: Message) -> None:
        self.message = message
        self.found: list[Fault] = []
        self.lacks = _lacks(turn, message)
        schema = message.schema
        self.flexible = schema is not None and message.api_version in schema.flexible
        if self.lacks or (not message.faults and is_canonical(message)):
            return
        self.found, end = faults(message)
        if end is None:
            self.lacks = "the message can't be read to its end"
        elif not self.flexible and message.frame[end:] == b"\0":
            self.found.append(
                Fault("E06", "", end, len(message.frame), "an empty tag section follows the body")
            )
        if turn.talk.partial and message.faults:
            self.found, self.lacks = [], turn.talk.partial


def _lacks(turn: Turn, message: Message) -> str:
    if any(each is message and why.rule != "F02" for each, why in turn.misfits):
        return f"the {message.kind} has another header or version than is due"
    if message.size > len(message.frame):
        return lost_bytes(message)
    is_known = message.schema is not None and not message.is_assumed
    return "" if is_known else "API or version is not known"


class _Looks:
    """Encoding faults of the newest exchange, shared by the rules of this file."""

    def __init__(self) -> None:
        self._turn: Callable[[], Turn | None] = lambda: None
        self._looks: list[_Look] = []

    def at(self, turn: Turn) -> list[_Look]:
        if self._turn() is not turn:
            self._turn = ref(turn)
            self._looks = [_Look(turn, message) for message in turn.exchange.messages]
        return self._looks


def _written_right(id: str, flexible: bool | None, turn: Turn, say: Say) -> None:
    """Check the messages of an exchange against one encoding rule."""
    if turn.exchange.is_token:
        return
    for look in turn.world.state(_Looks).at(turn):
        if flexible is not None and look.flexible is not flexible and not look.lacks:
            continue
        of_rule = [fault for fault in look.found if fault.rule == id]
        if look.lacks and not of_rule:
            say.unjudged(look.lacks)
            continue
        say.judged()
        for fault in of_rule:
            say.broken(
                _SIDES[look.message.kind],
                fault.found,
                message=look.message,
                path=fault.path,
                span=(fault.start, fault.end),
            )


@cache
def _glance(flexible: bool | None) -> Callable[[Turn], int | None]:
    """Return the fast check for messages of flexible or other versions; None: for all."""

    def is_plain(turn: Turn) -> int | None:
        if turn.exchange.is_token:
            return 0
        looks = turn.world.state(_Looks).at(turn)
        if any(look.lacks or look.found for look in looks):
            return None
        return sum(flexible is None or look.flexible is flexible for look in looks)

    return is_plain


def _encoding(
    id: str,
    title: str,
    severity: Severity,
    source: str,
    asks: str,
    example: str,
    flexible: bool | None = None,
) -> None:
    """Register an encoding rule; `flexible` limits it to flexible or to other versions."""
    call: Callable[..., None] = partial(_written_right, id, flexible)
    glance = _glance(flexible)
    rule(id, title, severity, source=source, asks=asks, example=example, glance=glance)(call)


_encoding(
    "E01",
    "A varint ends within five bytes",
    Severity.ERROR,
    "ByteUtils.readUnsignedVarint: IllegalArgumentException",
    "An unsigned varint has at most 32 bits, so at most five bytes.",
    "ff ff ff ff ff 01 as the length of a compact string",
    True,
)
_encoding(
    "E02",
    "Varints are in their shortest form",
    Severity.WARNING,
    "ByteUtils.writeUnsignedVarint; readers take longer forms too",
    "A varint has no more bytes than its value needs: its last byte is not 0, unless it is alone.",
    "82 00 for 2",
    True,
)
_encoding(
    "E03",
    "Tagged fields come in the order of their tags",
    Severity.WARNING,
    "KIP-482; TaggedFields.java (read): 'Invalid or out-of-order tag'; brokers of Kafka 3.9 and "
    "4.3 take it in requests",
    "In a tag section each tag is greater than the one before it.",
    "tag 1, then tag 0",
    True,
)
_encoding(
    "E04",
    "A tagged field has the size that it says",
    Severity.ERROR,
    "TaggedFields.java: a reader that does not know the tag skips by the size; KIP-482",
    "The size of a tagged field ends inside the message, and the field ends where its size says.",
    "tag 0, an int64, with size 4",
    True,
)
_encoding(
    "E05",
    "A tag is not repeated",
    Severity.WARNING,
    "RawTaggedFieldWriter.java: 'Invalid raw tag field list: tag ... comes after tag ...'; "
    "brokers of Kafka 3.9 and 4.3 take it in requests",
    "A tag stands once in its section, be it known or not.",
    "tag 0 twice in one section",
    True,
)
_encoding(
    "E06",
    "Only flexible versions have tag sections",
    Severity.WARNING,
    "Kafka's message README: 'tagged fields can be added only to flexible versions'; brokers do "
    "not look at what follows a body",
    "A message of a version that is not flexible ends with its last field.",
    "a 00 behind the last field of Metadata v8",
    False,
)
_encoding(
    "E07",
    "Tagged fields at their default are left out",
    Severity.WARNING,
    "MessageDataGenerator.java: a tagged field is written if it differs from its default",
    "A known tagged field is written only where its value differs from its default.",
    "the rack of a node endpoint as a tagged null",
    True,
)
_encoding(
    "E09",
    "Null stands only where null is allowed",
    Severity.ERROR,
    "the generated readers: 'non-nullable field ... was serialized as null'",
    "A text, bytes or an array is null only in versions whose declaration says that it may be.",
    "length -1, or 0 in its compact form, for the name of a topic in Produce",
)
_encoding(
    "E10",
    "Lengths are not below -1, and end inside the message",
    Severity.ERROR,
    "the generated readers: 'string field ... had invalid length', 'Error reading byte array of'",
    "The length of a text or of bytes is -1 for null or a count of bytes that follow; the count "
    "of an array likewise.",
    "a text of length -2, or of 200 bytes where 10 are left",
)
_encoding(
    "E11",
    "Texts are UTF-8",
    Severity.ERROR,
    "Kafka's message README (string: 'UTF-8'); readers put U+FFFD in place of what is not, so "
    "that different names become one",
    "The bytes of a text are valid UTF-8.",
    "the topic ff fe",
)
_encoding(
    "E12",
    "Booleans are 0 or 1",
    Severity.WARNING,
    "ByteBufferAccessor.java (writeByte of 0 or 1); readers take anything but 0 for true",
    "A boolean is the byte 0 or the byte 1.",
    "02 for allow_auto_topic_creation",
)
_encoding(
    "E13",
    "An array does not count more items than can follow",
    Severity.ERROR,
    "the generated readers: 'Tried to allocate a collection of size ..., but there are only ... "
    "bytes remaining'",
    "The count of an array is not more than the bytes that are left can hold.",
    "a count of 2,000,000,000 in a message of 40 bytes",
)
_encoding(
    "E14",
    "The mark of a struct that may be null is -1 or 1",
    Severity.WARNING,
    "the generated writers (KIP-893); readers take anything below 0 for null",
    "In front of a struct that may be null stands -1 where it is, and 1 where it is not.",
    "05 in front of the cursor of DescribeTopicPartitions",
)


_BY_ID_ONLY = {
    "Produce": (13, "topic_data"),
    "Fetch": (13, "topics"),
    "OffsetCommit": (10, "topics"),
    "ShareFetch": (0, "topics"),
    "ShareAcknowledge": (0, "topics"),
}
"""APIs that name topics by id alone: first such version, and list of topics in the request."""


@rule(
    "E15",
    "Topics that are named by id have one",
    Severity.WARNING,
    source="Uuid.java: the zero id means 'no id'; brokers answer UNKNOWN_TOPIC_ID (KIP-516)",
    asks="Where a request names topics by their id alone, the id is not zero.",
    example="Fetch v13 of topic 00000000-0000-0000-0000-000000000000",
    apis=tuple(_BY_ID_ONLY),
)
def topics_have_ids(turn: Turn, say: Say) -> None:
    """Check the topics of a request for the zero id."""
    first, name = _BY_ID_ONLY[turn.exchange.api or ""]
    if turn.version is None or turn.version < first:
        return
    if why := turn.lacks(response=False):
        say.unjudged(why)
        return
    say.judged()
    assert turn.asked is not None
    for index, topic in enumerate(turn.asked[name] or ()):
        topic_id: UUID = topic.topic_id
        if topic_id == NO_ID:
            what = f"the id of the topic is {topic_id}"
            say.broken(Side.CLIENT, what, path=f"{name}[{index}].topic_id")
