"""E: encoding of the primitive types."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from uuid import UUID
from weakref import ref

from conform.evidence.canonical_form import FormFault, find_form_faults, is_canonical
from conform.evidence.duplicate_items import distinct_key_fields
from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.evidence.unreadable import missing_bytes_reason
from conform.registry.rank import Severity
from conform.registry.rule import Side, rule
from conform.registry.rule_screen import Screen, Shape
from dissector.protocol.apis import api_name
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
        unreadable_reason: Why the message can't be checked to its end; empty if it can.
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
            self.unreadable_reason = "the message can't be decoded to its end"
        elif not self.flexible and message.frame[end:] == b"\0":
            self.faults.append(
                FormFault(
                    "E06", "", end, len(message.frame), "an empty tag section follows the body"
                )
            )
        if observation.connection.incomplete_reason and message.faults:
            self.faults, self.unreadable_reason = [], observation.connection.incomplete_reason


def _unreadable_reason(observation: Observation, message: Message) -> str:
    mismatches = (found for each, found in observation.decode_mismatches if each is message)
    if any(mismatch.rule != "F02" for mismatch in mismatches):
        return f"the {message.kind} has another header or body version than expected"
    if message.size > len(message.frame):
        return missing_bytes_reason(message)
    is_known = message.schema is not None and not message.is_assumed
    return "" if is_known else "the API or version is unknown"


class _MessageForms:
    """Encoding faults of the newest exchange, shared by all encoding rules."""

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
    for form in observation.capture_state.state(_MessageForms).forms_of(observation):
        if flexible is not None and form.flexible is not flexible and not form.unreadable_reason:
            continue
        of_rule = [fault for fault in form.faults if fault.rule == id]
        if form.unreadable_reason and not of_rule:
            reporter.count_unjudged(form.unreadable_reason)
            continue
        reporter.count_judged()
        for fault in of_rule:
            reporter.report_violation(
                _SIDES[form.message.kind],
                fault.found,
                message=form.message,
                path=fault.path,
                span=(fault.start, fault.end),
            )


@cache
def _canonical_fast_check(flexible: bool | None) -> Callable[[Observation], int | None]:
    """Return the fast check for flexible or for other versions; None: for all."""

    def count_canonical(observation: Observation) -> int | None:
        if observation.exchange.is_token:
            return 0
        forms = observation.capture_state.state(_MessageForms).forms_of(observation)
        if any(form.unreadable_reason or form.faults for form in forms):
            return None
        return sum(flexible is None or form.flexible is flexible for form in forms)

    return count_canonical


@cache
def _canonical_screen(flexible: bool | None) -> Screen:
    """Return the screen for flexible or for other versions; None: for all."""

    def count(shape: Shape) -> int:
        if flexible is None:
            return shape.messages
        return (shape.request, shape.response).count(flexible)

    return Screen(count)


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
    check = _canonical_fast_check(flexible)
    rule(
        id,
        title,
        severity,
        source=source,
        asks=asks,
        example=example,
        fast_check=check,
        screen=_canonical_screen(flexible),
    )(call)


_register_encoding_rule(
    "E01",
    "Varint longer than five bytes",
    Severity.ERROR,
    "ByteUtils.readUnsignedVarint: IllegalArgumentException",
    "An unsigned varint has at most 32 bits, so at most five bytes.",
    "ff ff ff ff ff 01 as the length of a compact string",
    True,
)
_register_encoding_rule(
    "E02",
    "Varint not in its shortest form",
    Severity.WARNING,
    "ByteUtils.writeUnsignedVarint; readers accept longer forms",
    "A varint has no more bytes than its value needs: its last byte is not 0, unless it is the "
    "only one.",
    "82 00 for 2",
    True,
)
_register_encoding_rule(
    "E03",
    "Tagged fields not in ascending order of their tags",
    Severity.WARNING,
    "KIP-482; TaggedFields.java (read): 'Invalid or out-of-order tag'; brokers of Kafka 3.9 and "
    "4.3 accept it in requests",
    "In a tag section each tag is greater than the one before it.",
    "tag 1, then tag 0",
    True,
)
_register_encoding_rule(
    "E04",
    "Tagged field with a wrong size",
    Severity.ERROR,
    "TaggedFields.java: a reader that does not know the tag skips its bytes by the size; KIP-482",
    "A tagged field ends inside the message, exactly where its size indicates.",
    "tag 0, an int64, with size 4",
    True,
)
_register_encoding_rule(
    "E05",
    "Repeated tag in a tag section",
    Severity.WARNING,
    "RawTaggedFieldWriter.java: 'Invalid raw tag field list: tag ... comes after tag ...'; "
    "brokers of Kafka 3.9 and 4.3 accept it in requests",
    "A tag, known or unknown, occurs once in its section.",
    "tag 0 twice in one section",
    True,
)
_register_encoding_rule(
    "E06",
    "Tag section in a version that is not flexible",
    Severity.WARNING,
    "Kafka's message README: 'tagged fields can be added only to flexible versions'; brokers "
    "ignore bytes after a body",
    "A message in a version that is not flexible ends with its last field.",
    "a byte 00 after the last field of Metadata v8",
    False,
)
_register_encoding_rule(
    "E07",
    "Tagged field written with its default value",
    Severity.WARNING,
    "MessageDataGenerator.java: a tagged field is written if it differs from its default",
    "A known tagged field is written only if its value differs from its default.",
    "the rack of a node endpoint written as a tagged null",
    True,
)
_register_encoding_rule(
    "E09",
    "Null in a field that is not nullable",
    Severity.ERROR,
    "the generated readers: 'non-nullable field ... was serialized as null'",
    "A string, bytes or an array is null only in versions in which the field is declared nullable.",
    "length -1 (0 in compact form) for the name of a topic in Produce",
)
_register_encoding_rule(
    "E10",
    "Invalid length of a string, of bytes or of an array",
    Severity.ERROR,
    "the generated readers: 'string field ... had invalid length', 'Error reading byte array of'",
    "The length of a string or of bytes is -1 for null, or a number of bytes that the message "
    "still has; the count of an array is -1 or greater.",
    "a string of length -2, or of 200 bytes where 10 are left",
)
_register_encoding_rule(
    "E11",
    "String that is not valid UTF-8",
    Severity.ERROR,
    "Kafka's message README (string: 'UTF-8'); readers replace invalid bytes by U+FFFD, so that "
    "different names become equal",
    "The bytes of a string are valid UTF-8.",
    "the topic name ff fe",
)
_register_encoding_rule(
    "E12",
    "Boolean other than 0 or 1",
    Severity.WARNING,
    "ByteBufferAccessor.java (writeByte of 0 or 1); readers treat any byte but 0 as true",
    "A boolean is the byte 0 or the byte 1.",
    "02 for allow_auto_topic_creation",
)
_register_encoding_rule(
    "E13",
    "Array count larger than the rest of the message",
    Severity.ERROR,
    "the generated readers: 'Tried to allocate a collection of size ..., but there are only ... "
    "bytes remaining'",
    "The remaining bytes of the message can hold as many items as the count of the array "
    "indicates.",
    "a count of 2,000,000,000 in a message of 40 bytes",
)
_register_encoding_rule(
    "E14",
    "Nullable struct with a presence byte other than -1 or 1",
    Severity.WARNING,
    "the generated writers (KIP-893); readers treat any value below 0 as null",
    "A nullable struct begins with the byte -1 if it is null, and with 1 if it is present.",
    "05 before the cursor of DescribeTopicPartitions",
)


_FIRST_WITH_TOPIC_IDS_ONLY = {
    "Produce": (13, "topic_data"),
    "Fetch": (13, "topics"),
    "OffsetCommit": (10, "topics"),
    "ShareFetch": (0, "topics"),
    "ShareAcknowledge": (0, "topics"),
}
"""First version that identifies topics by id alone, and list of topics in the request, by API."""


def _identifies_by_id(shape: Shape) -> int:
    first_version, _ = _FIRST_WITH_TOPIC_IDS_ONLY[api_name(shape.api_key)]
    return int(shape.version >= first_version)


@rule(
    "E15",
    "Topic identified by the zero topic id",
    Severity.WARNING,
    source="Uuid.java: the zero id means 'no id'; brokers respond with UNKNOWN_TOPIC_ID (KIP-516)",
    asks="In a request that identifies topics by id alone, no topic id is zero.",
    example="Fetch v13 of topic 00000000-0000-0000-0000-000000000000",
    apis=tuple(_FIRST_WITH_TOPIC_IDS_ONLY),
    screen=Screen(_identifies_by_id, keys=distinct_key_fields),
)
def check_topic_ids(observation: Observation, reporter: Reporter) -> None:
    """Check the topics of a request for the zero id."""
    first_version, topics_field = _FIRST_WITH_TOPIC_IDS_ONLY[observation.exchange.api or ""]
    if observation.version is None or observation.version < first_version:
        return
    if reason := observation.unreadable_reason(response=False):
        reporter.count_unjudged(reason)
        return
    reporter.count_judged()
    assert observation.request_body is not None
    for index, topic in enumerate(observation.request_body[topics_field] or ()):
        topic_id: UUID = topic.topic_id
        if topic_id == NO_ID:
            path = f"{topics_field}[{index}].topic_id"
            reporter.report_violation(Side.CLIENT, f"the topic id is {topic_id}", path=path)
