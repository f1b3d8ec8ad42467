"""
Mask secrets in bodies, records and hex dumps.

These are secret: fields declared as secret (SASL tokens, salts, keys, delegation tokens, metrics),
the values of settings that may be secret (see `settings`), text that contains a credential (see
`credentials`), unknown tagged fields, and the bytes of an Envelope, or of a record of Kafka's own
topics, that contain any of these. Bytes that can't be decoded are secret as a whole if they may
contain a secret: in messages of APIs with secrets, of unknown APIs, of APIs that a definition
changes or adds, and in responses without their request. So is the body of such an API in an unknown
version, as the secret may be elsewhere in it. What a login showed is secret in all later messages
of its connection. Records of users' topics are not inspected, except those of Connect's settings.

Source: KIP-226 and KIP-133 (sensitive configuration entries), KIP-554, KIP-48, KIP-714.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeAlias
from uuid import UUID

from construct import Container

from dissector.protocol.apis import api
from dissector.protocol.codecs.compiled import UNKNOWN_TAGS
from dissector.protocol.embedded.fields import enveloped_request
from dissector.protocol.embedded.own_topics import DecodedRecord, is_own_topic
from dissector.protocol.embedded.reading import Embedded
from dissector.protocol.embedded.sasl_tokens import MASK
from dissector.protocol.embedded.secrecy.blanked_ranges import merged
from dissector.protocol.embedded.secrecy.credentials import holds_credential
from dissector.protocol.embedded.secrecy.hidden_records import records_are_hidden
from dissector.protocol.embedded.secrecy.setting_records import is_settings_topic
from dissector.protocol.embedded.secrecy.settings import PASSWORD_TYPE, is_sensitive
from dissector.protocol.facts import CLUSTER_METADATA, CLUSTER_METADATA_ID
from dissector.protocol.login_secrets import knowing
from dissector.protocol.messages import Message, decode_request
from dissector.protocol.schema import Field, Schema
from dissector.protocol.spans import Span, spans

TopicName: TypeAlias = Callable[[UUID], str | None]

_ENVELOPE_FIELDS = ("request_data", "response_data")
_FIXED_HEADER_BYTES = {"request": 8, "response": 4}
"""Size of the header fields that are never secret: API key, version and correlation id; of
responses the correlation id."""


@cache
def setting_name(fields: tuple[Field, ...]) -> str | None:
    """Return the field with the name of a setting, if a struct of these fields is a setting."""
    return _setting_name({each.name for each in fields if each.type == "string"})


def _setting_name(names: Collection[str]) -> str | None:
    return next((name for name in ("name", "key") if {name, "value"} <= set(names)), None)


def _is_sensitive(entry: Mapping[str, Any], name: str, outer_sensitive: bool | None) -> bool:
    """
    Return whether the value of a setting may be a secret.

    Args:
        entry: The fields of the setting.
        name: The field with its name; a setting named by `key` need not be known to Kafka.
        outer_sensitive: Whether the setting that encloses this one is sensitive; None if the
            setting does not exist.
    """
    mark = entry.get("is_sensitive")
    if outer_sensitive or mark or entry.get("config_type") == PASSWORD_TYPE:
        return True
    marked = mark is not None or outer_sensitive is not None or name == "key"
    return is_sensitive(entry.get(name), marked=marked)


@cache
def carries_secrets(fields: tuple[Field, ...]) -> bool:
    """Return whether a declaration has a secret field, or settings that may be one."""
    return setting_name(fields) is not None or any(
        each.secret or each.name in _ENVELOPE_FIELDS or carries_secrets(each.fields)
        for each in fields
    )


@cache
def carries_messages(fields: tuple[Field, ...]) -> bool:
    """Return whether a declaration has a field that holds a message of another API (Envelope)."""
    return any(each.name in _ENVELOPE_FIELDS or carries_messages(each.fields) for each in fields)


def mask(
    body: Container, schema: Schema, version: int, request: Message | None = None
) -> Container:
    """
    Return a body with each secret replaced by `MASK`; null stays null.

    Structs with a secret are copied, all others are shared with the body. `records` fields are left
    alone: their records are masked by `mask_record` once they are decoded.

    Args:
        body: As the codec of the schema and version parsed it.
        schema: Its declaration.
        version: Its version.
        request: For an Envelope response its request, which determines the API inside. Without it
            the whole inner response is masked.
    """
    return _Masker(enveloped_request(request)).mask_struct(body, schema.fields, None)


@cache
def _maskable_fields(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    """Return the fields that may contain a secret, by declaration or by a user's mistake."""
    return tuple(
        each
        for each in fields
        if each.secret or each.fields or each.type.removeprefix("[]") in ("string", "bytes")
    )


@dataclass(frozen=True, slots=True)
class _Masker:
    """Masks structs; `request` is the request inside the Envelope request of a response."""

    request: Message | None

    def mask_struct(
        self, struct: Container, fields: tuple[Field, ...], outer_sensitive: bool | None
    ) -> Container:
        """Mask one struct; `outer_sensitive` as for `_is_sensitive`."""
        name = setting_name(fields)
        sensitive = (
            outer_sensitive if name is None else _is_sensitive(struct, name, outer_sensitive)
        )
        changed: dict[str, Any] = {}
        if UNKNOWN_TAGS in struct:
            tags = struct[UNKNOWN_TAGS]
            changed[UNKNOWN_TAGS] = {tag: value and MASK for tag, value in tags.items()}
        for each in _maskable_fields(fields):
            value = struct.get(each.name)
            if value is None:
                continue
            masked = self.mask_value(value, each, sensitive)
            if masked is not value:
                changed[each.name] = masked
        return Container({**struct, **changed}) if changed else struct

    def mask_value(self, value: Any, declared: Field, sensitive: bool | None) -> Any:
        """Mask a field's value; `sensitive`: whether its setting is; None outside of settings."""
        if declared.secret or (sensitive and declared.name == "value"):
            return MASK
        if declared.name in _ENVELOPE_FIELDS:
            return MASK if _may_hold_secrets(declared.name, value, self.request) else value
        if isinstance(value, list):
            items = [self.mask_item(each, declared, sensitive) for each in value]
            same = all(new is old for new, old in zip(items, value, strict=True))
            return value if same else items
        return self.mask_item(value, declared, sensitive)

    def mask_item(self, value: Any, declared: Field, sensitive: bool | None) -> Any:
        """Mask a struct, a text or bytes."""
        if declared.fields:
            return value if value is None else self.mask_struct(value, declared.fields, sensitive)
        return MASK if isinstance(value, str | bytes) and holds_credential(value) else value


def _may_hold_secrets(name: str, data: object, request: Message | None) -> bool:
    """Return whether the request or response inside an Envelope may hold secrets."""
    if not isinstance(data, bytes) or not data:
        return False
    inner = decode_request(data) if name == "request_data" else request
    found = api(inner.api_key) if inner is not None and inner.api_key is not None else None
    if found is None:
        return True
    schema = found.request if name == "request_data" else found.response
    return carries_secrets(schema.fields) or holds_credential(data)


def mask_embedded(found: Embedded) -> Embedded:
    """
    Return a copy of embedded data with its secrets masked.

    If the data may contain secrets, the copy has neither `data` nor `message`.
    """
    inner = [mask_embedded(each) for each in found.inner]
    if found.name == "SASL token":
        return replace(found, data=b"", inner=inner)
    value = found.value
    is_assumed = found.message is not None and may_hold_secrets_anywhere(found.message)
    if found.schema is None or found.version is None or is_assumed:
        value = None if is_assumed else value
        secret = found.message is not None or holds_credential(found.data)
    else:
        value = value and mask(value, found.schema, found.version)
        secret = carries_secrets(found.schema.fields) or holds_credential(found.data)
    if not secret and value is found.value:
        return replace(found, inner=inner)
    return replace(found, data=b"", message=None, value=value, inner=inner)


def mask_record(topic: str, record: DecodedRecord) -> DecodedRecord:
    """Return a copy of a record of Kafka's own topics, masked as by `mask_embedded`."""
    return record if record.value is None else replace(record, value=mask_embedded(record.value))


def is_secret_topic(topic: Any) -> bool:
    """Return whether records of the topic with this name or id may contain secrets."""
    if records_are_hidden():
        return True
    if not isinstance(topic, str):
        return bool(topic == CLUSTER_METADATA_ID)
    return is_own_topic(topic) or is_settings_topic(topic)


def is_secret_record(topic: str, record: DecodedRecord) -> bool:
    """Return whether the raw value of a record must be masked."""
    if not is_own_topic(topic) or record.tombstone:
        return False
    value = record.value
    if value is None or value.schema is None or value.version is None:
        return topic == CLUSTER_METADATA or (value is not None and holds_credential(value.data))
    if holds_credential(value.data):
        return True
    if not carries_secrets(value.schema.fields):
        return False
    return value.value is None or mask(value.value, value.schema, value.version) != value.value


def mask_body(message: Message, request: Message | None = None) -> Container | None:
    """
    Return the body of a message with its secrets masked; None without a body.

    Args:
        message: The message.
        request: As for `mask`.
    """
    if message.body is None or message.schema is None or message.api_version is None:
        return None
    if may_hold_secrets_anywhere(message):
        masked = _all_masked(message.body)
        assert isinstance(masked, Container)
        return masked
    with knowing(message.known_secrets):
        return mask(message.body, message.schema, message.api_version, request)


def may_hold_secrets_anywhere(message: Message) -> bool:
    """
    Return whether any field of a message may be a secret.

    In an unknown version a secret may be where the newest known version has another field.
    """
    schema = message.schema
    return message.is_assumed and schema is not None and carries_secrets(schema.fields)


def _all_masked(value: Any) -> Any:
    """Return a value with everything replaced by `MASK`, except containers, lists and nulls."""
    if isinstance(value, Mapping):
        return Container({name: _all_masked(each) for name, each in value.items()})
    if isinstance(value, list):
        return [_all_masked(each) for each in value]
    return None if value is None else MASK


_LEAST_MESSAGE_BYTES = 8
"""A size and a token: a damaged size makes a frame of a message and a login behind it."""


def secret_ranges(
    message: Message, request: Message | None = None, body: Span | None = None
) -> list[tuple[int, int]]:
    """
    Return the ranges [start, end) of a message's frame to blank in a hex dump.

    A message that may contain secrets is blanked from the first invalid byte on; a message of an
    unknown API from the end of its header. So is what is left over behind a body, if it is long
    enough to hold a next message.

    Args:
        message: The message.
        request: As for `mask`.
        body: The spans of its body, if the caller has them.
    """
    with knowing(message.known_secrets):
        return _secret_ranges(message, request, body)


def _secret_ranges(
    message: Message, request: Message | None, body: Span | None
) -> list[tuple[int, int]]:
    found = None if message.api_key is None else api.under(message.schemas, message.api_key)
    # Fields that only a definition declares have not been reviewed.
    is_foreign = found is not None and bool(found.sources)
    schema, size = message.schema, len(message.frame)
    # The start of the body is known only if the header was decoded.
    if found is None or schema is None or message.api_version is None or not message.body_start:
        start = message.body_start or _FIXED_HEADER_BYTES[message.kind]
        may_hide = is_foreign or found is None or carries_secrets(found.schema(message.kind).fields)
        hidden = may_hide or holds_credential(message.frame[start:])
        return [(start, size)] if hidden and start < size else []
    if may_hold_secrets_anywhere(message):
        return [(message.body_start, size)] if message.body_start < size else []
    ranges = secret_spans(spans(*message.header, message.frame))
    root = body or spans(schema, message.api_version, message.frame, message.body_start)
    ranges += secret_spans(root, request, message.topic_name)
    rest = _uncertain_start(root) if root.problem else root.end
    if (
        (not root.problem and size - rest >= _LEAST_MESSAGE_BYTES)
        or is_foreign
        or carries_secrets(schema.fields)
        or _has_secret_topic(root, message.topic_name)
        or holds_credential(message.frame[rest:])
    ):
        ranges.append((rest, size))
    return merged(ranges)


def secret_spans(
    root: Span, request: Message | None = None, topic_name: TopicName = lambda topic_id: None
) -> list[tuple[int, int]]:
    """
    Return the ranges [start, end) to blank in a hex dump of a span.

    Args:
        root: A message, as returned by `spans`; the ranges are whole fields, lengths included.
        request: As for `mask`.
        topic_name: Returns the name of a topic id, or None.
    """
    found = _SecretCollector(enveloped_request(request), topic_name)
    found.walk(root, outer_sensitive=None, secret_topic=False)
    return merged(found.ranges)


class _SecretCollector:
    """Walks a tree of spans and collects the ranges of the secret ones."""

    def __init__(self, request: Message | None, topic_name: TopicName) -> None:
        self.request = request
        self.topic_name = topic_name
        self.ranges: list[tuple[int, int]] = []

    def walk(self, span: Span, outer_sensitive: bool | None, secret_topic: bool) -> None:
        secret_topic |= _is_secret_topic(span.children, self.topic_name)
        fields = {each.name: each.value for each in span.children}
        name = _setting_name(fields)
        sensitive = (
            outer_sensitive if name is None else _is_sensitive(fields, name, outer_sensitive)
        )
        for each in span.children:
            if self.is_secret(each, bool(sensitive), secret_topic):
                self.ranges.append((each.start, each.end))
            else:
                self.walk(each, sensitive, secret_topic)

    def is_secret(self, span: Span, sensitive: bool, secret_topic: bool) -> bool:
        declared = span.declared
        if declared is None and span.name.startswith("tag "):
            return True
        if declared is not None and declared.name in _ENVELOPE_FIELDS:
            return _may_hold_secrets(declared.name, span.value, self.request)
        if span.value is None and not span.problem:
            return False
        if declared is not None and declared.type == "records":
            return secret_topic
        if declared is not None and (declared.secret or (sensitive and declared.name == "value")):
            return True
        return isinstance(span.value, str | bytes) and holds_credential(span.value)


def _is_secret_topic(fields: Iterable[Span], topic_name: TopicName) -> bool:
    """Return whether a struct's fields have the name or id of a topic with secrets."""
    values = [each.value for each in fields]
    return any(
        is_secret_topic(each) or (isinstance(each, UUID) and is_secret_topic(topic_name(each)))
        for each in values
    )


def _has_secret_topic(span: Span, topic_name: TopicName) -> bool:
    return _is_secret_topic(span.children, topic_name) or any(
        _has_secret_topic(each, topic_name) for each in span.children
    )


def _uncertain_start(span: Span) -> int:
    """
    Return the position of the decoding error, or the start of its configuration entry.

    A field at the end of an entry may mark its value as a secret.
    """
    failed = next((each for each in span.children if each.problem), None)
    if failed is None or _setting_name([each.name for each in span.children]) is not None:
        return span.start
    return _uncertain_start(failed)
