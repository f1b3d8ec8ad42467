"""
What must not be shown, in a body, in a record and in a hex dump.

Secret are: fields declared so (SASL tokens, salts, keys, delegation tokens), the values of
configuration entries that hold passwords and keys, and the bytes of an Envelope or of a
`__cluster_metadata` record that carry either. Where bytes that may hold a secret can't be read, all
of them are taken for one. Fields of records of users' own topics are not looked at.

Source: KIP-226 and KIP-133 (sensitive configuration entries), KIP-554, KIP-48.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from construct import Container

from dissector.protocol.apis import api
from dissector.protocol.compiled import UNKNOWN_TAGS
from dissector.protocol.embedded.fields import enveloped_request
from dissector.protocol.embedded.reading import Embedded
from dissector.protocol.embedded.records import Decoded
from dissector.protocol.embedded.sasl import MASK
from dissector.protocol.facts import CLUSTER_METADATA, CLUSTER_METADATA_ID
from dissector.protocol.messages import Message, decode_request
from dissector.protocol.schema import Field, Schema
from dissector.protocol.spans import Span, spans

_SENSITIVE_ENDINGS = ("password", "jaas.config", ".secret", ".key")
_ENVELOPED = ("request_data", "response_data")
_FIXED_HEADER_BYTES = 4
"""
The part of a header that is never secret: of a response the correlation id, of a request the API.
"""


def is_sensitive(name: object) -> bool:
    """Tell whether a configuration entry of this name holds a secret."""
    return isinstance(name, str) and name.lower().endswith(_SENSITIVE_ENDINGS)


@cache
def carries_secrets(fields: tuple[Field, ...]) -> bool:
    """Tell whether a declaration has a secret field, or configuration entries that may be one."""
    return is_config(fields) or any(
        each.secret or each.name in _ENVELOPED or carries_secrets(each.fields) for each in fields
    )


@cache
def carries_messages(fields: tuple[Field, ...]) -> bool:
    """Tell whether a declaration has a field that holds a message of another API (Envelope)."""
    return any(each.name in _ENVELOPED or carries_messages(each.fields) for each in fields)


def is_config(fields: tuple[Field, ...]) -> bool:
    """Tell whether these are the fields of a configuration entry."""
    texts = {each.name for each in fields if each.type == "string"}
    return {"name", "value"} <= texts


def mask(
    body: Container, schema: Schema, version: int, request: Message | None = None
) -> Container:
    """
    Return a copy of a body with `MASK` in the place of each secret; null stays null.

    `records` fields stay as they are: whoever reads them masks with `mask_record`.

    Args:
        body: As the codec of the schema and version parsed it.
        schema: Its declaration.
        version: Its version.
        request: Of the response of an Envelope: its request, which tells what is inside. Without
            it the inner response is masked.
    """
    if not carries_secrets(schema.fields):
        return body
    inner = enveloped_request(request)
    return _masked_struct(body, schema.fields, False, inner)


def _masked_struct(
    struct: Container, fields: tuple[Field, ...], sensitive: bool, request: Message | None
) -> Container:
    """Mask one struct; `sensitive` says that the configuration entry around it is."""
    out = Container(struct)
    if UNKNOWN_TAGS in out:
        out[UNKNOWN_TAGS] = {tag: v and MASK for tag, v in out[UNKNOWN_TAGS].items()}
    config = is_config(fields)
    sensitive = config and _entry_is_sensitive(struct, sensitive)
    for each in fields:
        value = out.get(each.name)
        if value is None:
            continue
        hidden = each.secret or (sensitive and each.name == "value")
        if hidden or (each.name in _ENVELOPED and _hides_secrets(each.name, value, request)):
            out[each.name] = MASK
        elif each.fields and isinstance(value, list):
            out[each.name] = [_masked_struct(v, each.fields, sensitive, request) for v in value]
        elif each.fields:
            out[each.name] = _masked_struct(value, each.fields, sensitive, request)
    return out


def _entry_is_sensitive(entry: Mapping[str, Any], around: bool) -> bool:
    return around or bool(entry.get("is_sensitive")) or is_sensitive(entry.get("name"))


def _hides_secrets(name: str, data: object, request: Message | None) -> bool:
    """Tell whether the request or response inside an Envelope may hold secrets."""
    if not isinstance(data, bytes) or not data:
        return False
    inner = decode_request(data) if name == "request_data" else request
    found = api(inner.api_key) if inner is not None and inner.api_key is not None else None
    if found is None:
        return True
    schema = found.request if name == "request_data" else found.response
    return carries_secrets(schema.fields)


def mask_embedded(found: Embedded) -> Embedded:
    """
    Return a copy of something embedded with its secrets masked.

    The copy of one that may hold secrets has neither `data` nor `message`.
    """
    inner = [mask_embedded(each) for each in found.inner]
    if found.name == "SASL token":
        return replace(found, data=b"", inner=inner)
    if found.schema is None or found.version is None:
        secret = found.message is not None
        return replace(found, data=b"", message=None, inner=inner) if secret else found
    if not carries_secrets(found.schema.fields):
        return replace(found, inner=inner)
    value = found.value and mask(found.value, found.schema, found.version)
    return replace(found, data=b"", message=None, value=value, inner=inner)


def mask_record(topic: str, record: Decoded) -> Decoded:
    """Return a copy of one of Kafka's own records with its secrets masked; see `mask_embedded`."""
    if topic != CLUSTER_METADATA or record.value is None:
        return record
    return replace(record, value=mask_embedded(record.value))


def is_secret_topic(topic: Any) -> bool:
    """Tell whether records of a topic, of this name or id, may hold secrets."""
    return topic in (CLUSTER_METADATA, CLUSTER_METADATA_ID)


def is_secret_record(topic: str, record: Decoded) -> bool:
    """Tell whether the raw value of a record must not be shown."""
    if topic != CLUSTER_METADATA or record.tombstone:
        return False
    value = record.value
    if value is None or value.schema is None or value.version is None:
        return True
    if not carries_secrets(value.schema.fields):
        return False
    return value.value is None or mask(value.value, value.schema, value.version) != value.value


def secret_ranges(message: Message, request: Message | None = None) -> list[tuple[int, int]]:
    """
    Return the ranges [start, end) of a message's frame to blank in a hex dump.

    A message that may hold secrets is blanked from the first byte that does not fit its
    declaration; one whose API is not known is not blanked.
    """
    found = api(message.api_key) if message.api_key is not None else None
    if found is None:
        return []
    schema, size = message.schema, len(message.frame)
    # The body's place is known only where the header was read.
    if schema is None or message.api_version is None or not message.body_start:
        hidden = carries_secrets(found.schema(message.kind).fields)
        start = message.body_start or _FIXED_HEADER_BYTES
        return [(start, size)] if hidden and start < size else []
    if not carries_secrets(schema.fields) and not _has_records(schema.fields):
        return []
    root = spans(schema, message.api_version, message.frame, message.body_start)
    ranges = secret_spans(root, request)
    if carries_secrets(schema.fields) or _has_cluster_metadata(root):
        ranges.append((_unsure_from(root) if root.problem else root.end, size))
    return [(start, end) for start, end in ranges if start < end]


def secret_spans(root: Span, request: Message | None = None) -> list[tuple[int, int]]:
    """
    Return the ranges [start, end) to blank in a hex dump of what a span covers.

    Args:
        root: A message, as `spans` returns it; its ranges are whole fields, lengths included.
        request: As for `mask`.
    """
    declared = tuple(each.declared for each in root.children if each.declared is not None)
    found = _Secrets(carries_secrets(declared), enveloped_request(request))
    found.walk(root, sensitive=False, cluster_metadata=False)
    return found.ranges


class _Secrets:
    """Walks a tree of spans and keeps the ranges of those that are secret."""

    def __init__(self, hide_unknown_tags: bool, request: Message | None) -> None:
        self.hide_unknown_tags = hide_unknown_tags
        self.request = request
        self.ranges: list[tuple[int, int]] = []

    def walk(self, span: Span, sensitive: bool, cluster_metadata: bool) -> None:
        cluster_metadata |= _is_cluster_metadata(span.children)
        entry = {each.name: each.value for each in span.children}
        if {"name", "value"} <= entry.keys():
            sensitive = _entry_is_sensitive(entry, sensitive)
        for each in span.children:
            if self.hides(each, sensitive, cluster_metadata):
                self.ranges.append((each.start, each.end))
            else:
                self.walk(each, sensitive, cluster_metadata)

    def hides(self, span: Span, sensitive: bool, cluster_metadata: bool) -> bool:
        declared = span.declared
        if declared is None:
            return self.hide_unknown_tags and span.name.startswith("tag ")
        if declared.name in _ENVELOPED:
            return _hides_secrets(declared.name, span.value, self.request)
        if span.value is None and not span.problem:
            return False
        return (
            declared.secret
            or (sensitive and declared.name == "value")
            or (cluster_metadata and declared.type == "records")
        )


def _is_cluster_metadata(fields: Iterable[Span]) -> bool:
    """Tell whether the fields of a struct name KRaft's own topic, whose records hold secrets."""
    return any(is_secret_topic(each.value) for each in fields)


def _has_cluster_metadata(span: Span) -> bool:
    return _is_cluster_metadata(span.children) or any(map(_has_cluster_metadata, span.children))


def _has_records(fields: tuple[Field, ...]) -> bool:
    return any(each.type == "records" or _has_records(each.fields) for each in fields)


def _unsure_from(span: Span) -> int:
    """
    Return where reading stopped, or where the configuration entry begins in which it did.

    What comes at the end of an entry may say that its value is a secret.
    """
    failed = next((each for each in span.children if each.problem), None)
    if failed is None or {"name", "value"} <= {each.name for each in span.children}:
        return span.start
    return _unsure_from(failed)
