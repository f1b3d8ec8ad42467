"""E: encoding of the primitive types."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from uuid import UUID
from weakref import ref

from conform.evidence.canonical_form import FormFault, find_form_faults, is_canonical
from conform.evidence.observation import Observation, missing_bytes_reason
from conform.evidence.reporter import Reporter
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from dissector.protocol.facts import NO_ID
from dissector.protocol.messages import Message

_SIDES = {"request": Side.CLIENT, "response": Side.BROKER}


class _MessageForm:
    """
    Encoding faults of one message.

    Attributes:
        message: The message.
        flexible: Whether its version has tagged fields.
        faults: The encoding faults.
        unreadable_reason: Why the message can't be checked to its end; empty if it was.
    """

    __slots__ = ("faults", "flexible", "message", "unreadable_reason")

    def __init__(self, observation: Observation, message: Message) -> None:
        self.message = message
        self.faults: list[FormFault] = []
        self.unreadable_reason = _unreadable_reason(observation, message)
        schema = message.schema
        self.flexible = schema is not None and message.api_version in schema.flexible
        if self.unreadable_reason or (not message.faults and is_canonical(message)):
            return
        self.faults, end = find_form_faults(message)
        if end is None:
            self.unreadable_reason = "the message can't be read to its end"
        elif not self.flexible and message.frame[end:] == b"\0":
            self.faults.append(
                FormFault(
                    "E06", "", end, len(message.frame), "an empty tag section follows the body"
                )
            )
        if observation.connection.incomplete_reason and message.faults:
            self.faults, self.unreadable_reason = [], observation.connection.incomplete_reason


def _unreadable_reason(observation: Observation, message: Message) -> str:
    if any(each is message and why.rule != "F02" for each, why in observation.decode_mismatches):
        return f"the {message.kind} has another header or version than is due"
    if message.size > len(message.frame):
        return missing_bytes_reason(message)
    is_known = message.schema is not None and not message.is_assumed
    return "" if is_known else "API or version is not known"


class _MessageForms:
    """Encoding faults of the newest exchange, shared by the rules of this file."""

    def __init__(self) -> None:
        self._current: Callable[[], Observation | None] = lambda: None
        self._forms: list[_MessageForm] = []

    def forms_of(self, observation: Observation) -> list[_MessageForm]:
        if self._current() is not observation:
            self._current = ref(observation)
            self._forms = [
                _MessageForm(observation, message) for message in observation.exchange.messages
            ]
        return self._forms


def _check_encoding(
    id: str, flexible: bool | None, observation: Observation, reporter: Reporter
) -> None:
    """Check the messages of an exchange against one encoding rule."""
    if observation.exchange.is_token:
        return
    for look in observation.capture_state.state(_MessageForms).forms_of(observation):
        if flexible is not None and look.flexible is not flexible and not look.unreadable_reason:
            continue
        of_rule = [fault for fault in look.faults if fault.rule == id]
        if look.unreadable_reason and not of_rule:
            reporter.count_unjudged(look.unreadable_reason)
            continue
        reporter.count_judged()
        for fault in of_rule:
            reporter.report_violation(
                _SIDES[look.message.kind],
                fault.found,
                message=look.message,
                path=fault.path,
                span=(fault.start, fault.end),
            )


@cache
def _canonical_fast_check(flexible: bool | None) -> Callable[[Observation], int | None]:
    """Return the fast check for messages of flexible or other versions; None: for all."""

    def is_plain(turn: Observation) -> int | None:
        if turn.exchange.is_token:
            return 0
        looks = turn.capture_state.state(_MessageForms).forms_of(turn)
        if any(look.unreadable_reason or look.faults for look in looks):
            return None
        return sum(flexible is None or look.flexible is flexible for look in looks)

    return is_plain


def _register_encoding_rule(
    id: str,
    title: str,
    severity: Severity,
    source: str,
    asks: str,
    example: str,
    flexible: bool | None = None,
) -> None:
    """Register an encoding rule; `flexible` limits it to flexible or to other versions."""
    call: Callable[..., None] = partial(_check_encoding, id, flexible)
    glance = _canonical_fast_check(flexible)
    rule(id, title, severity, source=source, asks=asks, example=example, fast_check=glance)(call)


_register_encoding_rule(
    "E01",
    "A varint ends within five bytes",
    Severity.ERROR,
    "ByteUtils.readUnsignedVarint: IllegalArgumentException",
    "An unsigned varint has at most 32 bits, so at most five bytes.",
    "ff ff ff ff ff 01 as the length of a compact string",
    True,
)
_register_encoding_rule(
    "E02",
    "Varints are in their shortest form",
    Severity.WARNING,
    "ByteUtils.writeUnsignedVarint; readers take longer forms too",
    "A varint has no more bytes than its value needs: its last byte is not 0, unless it is alone.",
    "82 00 for 2",
    True,
)
_register_encoding_rule(
    "E03",
    "Tagged fields come in the order of their tags",
    Severity.WARNING,
    "KIP-482; TaggedFields.java (read): 'Invalid or out-of-order tag'; brokers of Kafka 3.9 and "
    "4.3 take it in requests",
    "In a tag section each tag is greater than the one before it.",
    "tag 1, then tag 0",
    True,
)
_register_encoding_rule(
    "E04",
    "A tagged field has the size that it says",
    Severity.ERROR,
    "TaggedFields.java: a reader that does not know the tag skips by the size; KIP-482",
    "The size of a tagged field ends inside the message, and the field ends where its size says.",
    "tag 0, an int64, with size 4",
    True,
)
_register_encoding_rule(
    "E05",
    "A tag is not repeated",
    Severity.WARNING,
    "RawTaggedFieldWriter.java: 'Invalid raw tag field list: tag ... comes after tag ...'; "
    "brokers of Kafka 3.9 and 4.3 take it in requests",
    "A tag stands once in its section, be it known or not.",
    "tag 0 twice in one section",
    True,
)
_register_encoding_rule(
    "E06",
    "Only flexible versions have tag sections",
    Severity.WARNING,
    "Kafka's message README: 'tagged fields can be added only to flexible versions'; brokers do "
    "not look at what follows a body",
    "A message of a version that is not flexible ends with its last field.",
    "a 00 behind the last field of Metadata v8",
    False,
)
_register_encoding_rule(
    "E07",
    "Tagged fields at their default are left out",
    Severity.WARNING,
    "MessageDataGenerator.java: a tagged field is written if it differs from its default",
    "A known tagged field is written only where its value differs from its default.",
    "the rack of a node endpoint as a tagged null",
    True,
)
_register_encoding_rule(
    "E09",
    "Null stands only where null is allowed",
    Severity.ERROR,
    "the generated readers: 'non-nullable field ... was serialized as null'",
    "A text, bytes or an array is null only in versions whose declaration says that it may be.",
    "length -1, or 0 in its compact form, for the name of a topic in Produce",
)
_register_encoding_rule(
    "E10",
    "Lengths are not below -1, and end inside the message",
    Severity.ERROR,
    "the generated readers: 'string field ... had invalid length', 'Error reading byte array of'",
    "The length of a text or of bytes is -1 for null or a count of bytes that follow; the count "
    "of an array likewise.",
    "a text of length -2, or of 200 bytes where 10 are left",
)
_register_encoding_rule(
    "E11",
    "Texts are UTF-8",
    Severity.ERROR,
    "Kafka's message README (string: 'UTF-8'); readers put U+FFFD in place of what is not, so "
    "that different names become one",
    "The bytes of a text are valid UTF-8.",
    "the topic ff fe",
)
_register_encoding_rule(
    "E12",
    "Booleans are 0 or 1",
    Severity.WARNING,
    "ByteBufferAccessor.java (writeByte of 0 or 1); readers take anything but 0 for true",
    "A boolean is the byte 0 or the byte 1.",
    "02 for allow_auto_topic_creation",
)
_register_encoding_rule(
    "E13",
    "An array does not count more items than can follow",
    Severity.ERROR,
    "the generated readers: 'Tried to allocate a collection of size ..., but there are only ... "
    "bytes remaining'",
    "The count of an array is not more than the bytes that are left can hold.",
    "a count of 2,000,000,000 in a message of 40 bytes",
)
_register_encoding_rule(
    "E14",
    "The mark of a struct that may be null is -1 or 1",
    Severity.WARNING,
    "the generated writers (KIP-893); readers take anything below 0 for null",
    "In front of a struct that may be null stands -1 where it is, and 1 where it is not.",
    "05 in front of the cursor of DescribeTopicPartitions",
)


_FIRST_WITH_TOPIC_IDS_ONLY = {
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
    apis=tuple(_FIRST_WITH_TOPIC_IDS_ONLY),
)
def check_topic_ids(observation: Observation, reporter: Reporter) -> None:
    """Check the topics of a request for the zero id."""
    first, name = _FIRST_WITH_TOPIC_IDS_ONLY[observation.exchange.api or ""]
    if observation.version is None or observation.version < first:
        return
    if why := observation.unreadable_reason(response=False):
        reporter.count_unjudged(why)
        return
    reporter.count_judged()
    assert observation.request_body is not None
    for index, topic in enumerate(observation.request_body[name] or ()):
        topic_id: UUID = topic.topic_id
        if topic_id == NO_ID:
            what = f"the id of the topic is {topic_id}"
            reporter.report_violation(Side.CLIENT, what, path=f"{name}[{index}].topic_id")
