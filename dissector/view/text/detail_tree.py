"""
A message as a tree of fields, as in the detail pane of Wireshark.

Structures embedded in bytes fields are shown below them: record batches and their records,
subscriptions and assignments of group members, the request inside an Envelope, Kafka's own records.
Secrets are masked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dissector.protocol.embedded.control_payloads import decode_control
from dissector.protocol.embedded.fields import ENVELOPE, decode_field, enveloped_request
from dissector.protocol.embedded.masking import (
    is_secret_record,
    is_secret_topic,
    secret_ranges,
    secret_spans,
)
from dissector.protocol.embedded.own_topics import DecodedRecord, decode_record
from dissector.protocol.embedded.reading import Embedded
from dissector.protocol.embedded.sasl_tokens import decode_token
from dissector.protocol.messages import Message
from dissector.protocol.records import parse_records
from dissector.protocol.spans import Span, spans
from dissector.view.text.batch_lines import AnyRecord, RecordOptions, batch_lines
from dissector.view.text.escape import escaped, hexed
from dissector.view.text.field_lines import (
    MASK,
    LineOptions,
    TopicName,
    field_lines,
    indented,
    value_text,
)


def detail_tree(
    message: Message,
    *,
    request: Message | None = None,
    mechanism: str | None = None,
    topic_name: TopicName = lambda topic_id: None,
    show_secrets: bool = False,
) -> list[str]:
    """
    Return the lines of a message's tree.

    Positions are offsets in the frame, without its 4-byte size; `!` begins a line about a problem.

    Args:
        message: A request or response; without header and problems, it is a raw SASL token.
        request: The request of a response; it determines the content of an Envelope.
        mechanism: The SASL mechanism of the connection, if known.
        topic_name: Returns the name of a topic id, or None.
        show_secrets: Whether passwords, tokens and the like are shown.
    """
    return _DetailTree(message, request, mechanism, topic_name, show_secrets, 0).lines()


@dataclass(frozen=True, slots=True)
class _DetailTree:
    """One message; `inner` if it is in an Envelope. `base` is added to its positions."""

    message: Message
    request: Message | None
    mechanism: str | None
    topic_name: TopicName
    show_secrets: bool
    base: int
    inner: bool = False

    def lines(self) -> list[str]:
        message = self.message
        if message.correlation_id is None:
            return self.without_header()
        options = LineOptions(
            f"{message.api} {message.kind}",
            self.topic_name,
            self.base,
            self.masked_ranges(),
            self.nested_lines,
        )
        version = "" if message.shown_version is None else f" v{message.shown_version}"
        return [
            f"{message.api or 'unknown'}{version} {message.kind}, {message.size:,} bytes",
            *indented(self.header_and_body(options)),
            *indented([f"! {escaped(str(problem))}" for problem in message.problems]),
        ]

    def masked_ranges(self) -> list[tuple[int, int]]:
        """Return the ranges of the frame that are secret."""
        message = self.message
        if self.show_secrets:
            return []
        if self.inner and message.schema is None:
            # The Envelope around it is masked too where its content is unknown.
            return [(message.body_start, len(message.frame))]
        return secret_ranges(message, self.request)

    def without_header(self) -> list[str]:
        """Show a frame that is too short for a header, or a raw SASL token."""
        message = self.message
        range_text = f" [{self.base}..{self.base + len(message.frame)})"
        if message.problems:
            problems = [f"! {problem}" for problem in message.problems]
            return [f"{message.kind}: {hexed(message.frame)}{range_text}", *indented(problems)]
        token = decode_token(message.frame, self.mechanism, message.kind == "request")
        shown = hexed(message.frame) if self.show_secrets else MASK
        return [
            f"SASL token, {message.kind}: {escaped(token.text)}",
            f"  bytes: {shown}{range_text}",
        ]

    def header_and_body(self, options: LineOptions) -> list[str]:
        schema, version = self.message.header
        root = spans(schema, version, self.message.frame)
        header = [
            f"header{options.range_text(root.start, root.end)}",
            *indented(field_lines(root, options)),
        ]
        if root.problem:
            # Without the start of the body its secrets can't be located, so all of it is masked.
            masked = [] if self.show_secrets else [(root.end, len(self.message.frame))]
            return header + self.undeclared_bytes(
                "not read", root.end, replace(options, masked=masked)
            )
        return header + self.body(options)

    def body(self, options: LineOptions) -> list[str]:
        message = self.message
        schema, version = message.schema, message.api_version
        if schema is None or version is None:
            return self.undeclared_bytes("body", message.body_start, options)
        root = spans(schema, version, message.frame, message.body_start)
        remainder = "not read" if root.problem else "left over"
        return [
            f"body{options.range_text(root.start, root.end)}",
            *indented(field_lines(root, options)),
            *self.undeclared_bytes(remainder, root.end, options),
        ]

    def undeclared_bytes(self, name: str, start: int, options: LineOptions) -> list[str]:
        """Show the bytes from `start` on, which no declaration covers."""
        data = self.message.frame[start:]
        span = Span(name, "", None, start, start + len(data), data)
        shown = MASK if options.is_masked(span) else hexed(data)
        return [f"{name}: {shown}{options.range_text(span.start, span.end)}"] if data else []

    def nested_lines(self, span: Span, topic: str | None) -> list[str]:
        """Show the structure embedded in a bytes field of the message."""
        if not isinstance(span.value, bytes) or not span.value or span.declared is None:
            return []
        base = self.base + span.end - len(span.value)
        if span.declared.type == "records":
            return self.records(span.value, base, topic)
        embedded = decode_field(self.message, span.path, span.value, self.request, self.mechanism)
        return [] if embedded is None else self.embedded(embedded, base)

    def embedded(self, found: Embedded, base: int | None) -> list[str]:
        """Show an embedded structure, whose bytes begin at `base`."""
        if found.message is not None:
            return self.inner_message(found.message, base or 0)
        root = found.spans()
        if root is None:
            return [*_undeclared_value(found), *_problems(found, base)]
        inner = {each.path: each for each in found.inner}

        def nested_lines(span: Span, topic: str | None) -> list[str]:
            each = inner.get(span.path)
            if each is None or (base is None and each.message is not None):
                return []
            return self.embedded(each, None if base is None else base + span.end - len(each.data))

        masked = () if self.show_secrets else secret_spans(root)
        options = LineOptions(found.name, self.topic_name, base, masked, nested_lines)
        version = f" v{found.written_version}"
        return [
            f"{found.name}{version}{options.range_text(root.start, root.end)}",
            *indented(field_lines(root, options)),
            *indented(_problems(found, base)),
        ]

    def inner_message(self, message: Message, base: int) -> list[str]:
        """Show the message inside an Envelope; Kafka nests no deeper."""
        if message.api_key == ENVELOPE:
            return ["! an Envelope inside an Envelope is not decoded"]
        request = enveloped_request(self.request)
        return replace(self, message=message, request=request, base=base, inner=True).lines()

    def records(self, data: bytes, base: int, topic: str | None) -> list[str]:
        """Show the batches of a `records` field."""
        is_secret = is_secret_topic(topic) and not self.show_secrets

        def annotate(record: AnyRecord, control: bool) -> tuple[bool, list[str]]:
            if control:
                found: DecodedRecord | None = decode_control(record.key, record.value)
            else:
                found = decode_record(topic, record.key, record.value) if topic else None
            if found is None:
                return False, []
            secret = not self.show_secrets and is_secret_record(topic or "", found)
            return secret, self.kafka_record(found)

        batches = parse_records(data, may_be_cut=self.message.kind == "response")
        return batch_lines(batches, base, RecordOptions(is_secret, annotate))

    def kafka_record(self, record: DecodedRecord) -> list[str]:
        """Show a record that Kafka itself wrote."""
        lines = [f"{record.name}{', a tombstone' if record.tombstone else ''}"]
        for part in (record.key, record.value):
            lines += indented(self.embedded(part, None)) if part is not None else []
        part_problems = {
            id(p) for part in (record.key, record.value) if part for p in part.problems
        }
        remaining = [problem for problem in record.problems if id(problem) not in part_problems]
        return lines + indented([f"! {escaped(str(problem))}" for problem in remaining])


def _undeclared_value(found: Embedded) -> list[str]:
    """Show a value without declaration: a SASL token, an address."""
    if found.value is None:
        return [found.name]
    if "text" in found.value:
        return [f"{found.name}: {escaped(found.value['text'])}"]
    shown = ", ".join(f"{name} {value_text(value)}" for name, value in found.value.items())
    return [f"{found.name}: {shown}"]


def _problems(found: Embedded, base: int | None) -> Sequence[str]:
    lines = []
    for problem in found.problems:
        has_position = base is not None and problem.position is not None
        at = f" at byte {(base or 0) + (problem.position or 0)}" if has_position else ""
        lines.append(f"! {escaped(problem.path)}{at}: {escaped(problem.what)}")
    return lines
