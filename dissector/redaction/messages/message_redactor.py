"""
Replaces names and contents of requests and responses, in place.

A message keeps its size and every length in it. Bytes that do not match a declaration become zeros:
from the first field on that can't be decoded, behind the body, in unknown tagged fields, and whole
bodies of unknown APIs and versions. A message that can't be decoded remains so: where zeros would
be a legal body, all these bytes are another constant.
"""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from dissector.protocol.embedded.fields import decode_field
from dissector.protocol.embedded.reading import Embedded
from dissector.protocol.field_meanings import meaning_of
from dissector.protocol.field_roles import ValueKind
from dissector.protocol.messages import Message, decode_request, decode_response
from dissector.protocol.schema import Field
from dissector.protocol.spans import Span, spans
from dissector.redaction.messages.record_redactor import RecordRedactor
from dissector.redaction.messages.sasl import redact_token
from dissector.redaction.messages.structured_values import StructuredValues
from dissector.redaction.messages.values import Scope, ValueRedactor

_FILLERS = b"\x00\x7f\xff"
"""In place of undecodable bytes; all but the first are lengths that do not fit, or illegal."""

FindTopic = Callable[[UUID], str | None]


class MessageRedactor:
    """
    Replaces the values of messages.

    Attributes:
        topic_name: Returns the name of a topic id, if it is known.
        records: Replaces the content of `records` fields.
    """

    def __init__(self, values: ValueRedactor, topic_name: FindTopic) -> None:
        self.topic_name = topic_name
        self._values = values
        self.records = RecordRedactor(values, self.redact_embedded)

    @property
    def lost_batches(self) -> int:
        """Number of compressed batches zeroed for want of a replacement of their length."""
        return self.records.lost_batches

    def keep_schemas(self, structured: StructuredValues) -> None:
        """Replace what a schema reads so that it still does."""
        self.records.structured = structured

    def redact(
        self, message: Message, request: Message | None = None, mechanism: str | None = None
    ) -> bytes:
        """
        Return the frame of a message with other values.

        Args:
            message: The message.
            request: The request of a response.
            mechanism: The SASL mechanism of the connection, if it is known.
        """
        out = bytearray(message.frame)
        end = self._decodable(message, request, mechanism, out)
        out[end:] = bytes(len(out) - end)
        # Replay judges also a message that the end of its connection has cut by its bytes.
        if message.body is None and not _is_decodable(message, request, message.frame):
            return _undecodable(message, request, out, end)
        return bytes(out)

    def _decodable(
        self, message: Message, request: Message | None, mechanism: str | None, out: bytearray
    ) -> int:
        """Replace the values in the decodable part of a message; return where that ends."""
        end = self._header(message, out)
        if not message.body_start:
            return end
        schema, version = message.schema, message.api_version
        if schema is None or version is None or message.is_assumed or message.api is None:
            return message.body_start
        root = spans(schema, version, message.frame, message.body_start)
        walk = _Walk(self._values, self.records, out)
        walk.topic_name = self.topic_name

        def embedded(path: str, data: bytes) -> bytes | None:
            found = decode_field(message, path, data, request, mechanism)
            if found is None:
                return None
            if found.name == "SASL token":
                from_client = message.kind == "request"
                return redact_token(self._values, data, mechanism, from_client)
            return self.redact_embedded(found)

        walk.embedded = embedded
        walk.struct(root, f"{message.api}.{message.kind}", _outer_scope(request))
        return _decoded_end(root)

    def token(self, data: bytes, mechanism: str | None, *, from_client: bool) -> bytes:
        """Return a raw SASL token with other names and secrets."""
        return redact_token(self._values, data, mechanism, from_client)

    def redact_embedded(self, found: Embedded) -> bytes:
        """Return embedded bytes with other values; zeros from where they can't be decoded."""
        if found.message is not None:
            return self.redact(found.message)
        if found.name == "IP address":
            keeps = self._values.keeps(ValueKind.HOST)
            return found.data if keeps else self._values.pseudonyms.raw_address(found.data)
        root = found.spans()
        if root is None:
            return bytes(len(found.data))
        out = bytearray(found.data)
        inner = {each.path: each for each in found.inner}

        def embedded(path: str, data: bytes) -> bytes | None:
            return self.redact_embedded(inner[path]) if path in inner else None

        walk = _Walk(self._values, self.records, out)
        walk.embedded = embedded
        walk.struct(root, found.name, {})
        end = _decoded_end(root)
        out[end:] = bytes(len(out) - end)
        return bytes(out)

    def _header(self, message: Message, out: bytearray) -> int:
        """
        Replace the values in the decodable part of a header; return where that ends.

        What is left of a damaged one still shows that the connection is Kafka's.
        """
        schema, version = message.header
        root = spans(schema, version, message.frame)
        _Walk(self._values, self.records, out).struct(root, "header", {})
        fields = root.children
        if root.problem and fields and not any(field.problem for field in fields):
            return fields[-1].end  # behind it the tags are damaged
        return _decoded_end(root)


def _outer_scope(request: Message | None) -> Scope:
    """Return the fields of a response that depend on its request: a coordinator key's kind."""
    body = None if request is None else request.body
    return {} if body is None or "key_type" not in body else {"key_type": body["key_type"]}


def _undecodable(message: Message, request: Message | None, out: bytearray, at: int) -> bytes:
    """Return bytes with a constant from a place on, as a message that can't be decoded either."""
    for filler in _FILLERS:
        new = bytes(out[:at]) + bytes((filler,)) * (len(out) - at)
        if not _is_decodable(message, request, new):
            return new
    return bytes(out)


def _is_decodable(message: Message, request: Message | None, frame: bytes) -> bool:
    """Return whether bytes are a whole message of the same API and version."""
    if message.kind == "request":
        return decode_request(frame).body is not None
    version = message.shown_version if request is None else request.shown_version
    return decode_response(frame, message.api_key, version).body is not None


def _decoded_end(root: Span) -> int:
    """Return where the decoded fields end."""
    return _first_problem(root) if root.problem else root.end


def _first_problem(span: Span) -> int:
    """Return where the innermost field that failed begins."""
    failed = next((each for each in span.children if each.problem), None)
    return span.start if failed is None else _first_problem(failed)


def _is_number(span: Span) -> bool:
    """Return whether a field is null or a number that is never replaced."""
    is_int64 = span.declared is not None and span.declared.type.endswith("int64")
    return isinstance(span.value, int | float | None) and not is_int64


class _Walk:
    """
    One pass over the fields of a message.

    Attributes:
        embedded: Replaces bytes with a content of their own; returns None for an unknown one.
        topic_name: As of `MessageRedactor`.
    """

    def __init__(self, values: ValueRedactor, records: RecordRedactor, out: bytearray) -> None:
        self.embedded: Callable[[str, bytes], bytes | None] = lambda path, data: None
        self.topic_name: FindTopic = lambda topic_id: None
        self._values = values
        self._records = records
        self._out = out

    def struct(self, span: Span, path: str, outer: Scope) -> None:
        """Replace the values of a struct's fields."""
        # Unknown tags may be many, and would be copied into the scope of each struct below.
        beside = {e.name: e.value for e in span.children if e.declared and not e.children}
        scope = {**outer, **beside}
        for each in span.children:
            if not each.children and (each.problem or _is_number(each)):
                continue
            if each.declared is None:
                self._fill(each.end - len(each.value or b""), each.end, b"")
            elif each.declared.fields:
                self._structs(each, f"{path}.{each.name}", scope)
            elif each.declared.type.startswith("[]"):
                for item in each.children:
                    if not item.problem:
                        self._value(item, each.declared, f"{path}.{each.name}", scope)
            else:
                self._value(each, each.declared, f"{path}.{each.name}", scope)

    def _structs(self, span: Span, path: str, scope: Scope) -> None:
        """Walk into a struct, or into the structs of an array."""
        assert span.declared is not None
        if not span.declared.type.startswith("[]"):
            self.struct(span, path, scope)
            return
        for item in span.children:
            self.struct(item, path, scope)

    def _value(self, span: Span, declared: Field, path: str, scope: Scope) -> None:
        """Replace one value."""
        value, kind = span.value, meaning_of(declared, path).kind
        if isinstance(value, str):
            data = value.encode("utf-8", "surrogateescape")
            text = self._values.text(kind, value, scope)
            new = text.encode("utf-8", "surrogateescape")
        elif isinstance(value, UUID):
            data = value.bytes
            new = data if self._keeps(kind) else self._values.pseudonyms.uuid(data)
        elif isinstance(value, bytes):
            data, new = value, self._bytes(kind, span.path, value, scope)
        elif kind is ValueKind.PRODUCER_ID and isinstance(value, int):
            data = value.to_bytes(8, "big", signed=True)
            number = value if self._keeps(kind) else self._values.pseudonyms.producer_id(value)
            new = number.to_bytes(8, "big", signed=True)
        else:
            return
        self._fill(span.end - len(data), span.end, new)

    def _keeps(self, kind: ValueKind | None) -> bool:
        return kind is not None and self._values.keeps(kind)

    def _bytes(self, kind: ValueKind | None, path: str, data: bytes, scope: Scope) -> bytes:
        if kind is ValueKind.RECORDS:
            return self._records.redact(data, self._topic(scope))
        if kind is ValueKind.SECRET:
            return self._values.pseudonyms.noise(data)
        # Opaque fields, too, may have a known role in their place.
        return self.embedded(path, data) or bytes(len(data))

    def _topic(self, scope: Scope) -> str | None:
        """Return the topic of records, by its name or its id."""
        name = scope.get("name", scope.get("topic"))
        if isinstance(name, str) and name:
            return name
        topic_id = scope.get("topic_id")
        return self.topic_name(topic_id) if isinstance(topic_id, UUID) else None

    def _fill(self, start: int, end: int, new: bytes) -> None:
        """Write new bytes; without any of the right length zeros."""
        assert start <= end
        self._out[start:end] = new if len(new) == end - start else bytes(end - start)
