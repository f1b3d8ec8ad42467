"""
Message bodies in the canonical version of each API.

The canonical version is the newest version with topic names instead of topic ids. It makes requests
of different versions comparable, and an answer is composed once for all versions.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any
from uuid import UUID

from construct import Container

from cluster.client.pending_request import codecs_of
from cluster.conversion.resource_names import NO_ID, TopicIds
from cluster.conversion.version_converter import convert, names_topics_by_id
from dissector.protocol.api import Api, Kind
from dissector.protocol.apis import api
from dissector.protocol.apis.data.list_offsets import ListOffsetsResponse
from dissector.protocol.messages import Message
from dissector.protocol.schema import Schema

_CORRELATION = struct.Struct(">i")
_UNKNOWN_ID = "id:"
"""Prefix of placeholders for topic ids without a known name; illegal in names of topics."""


class TopicNames:
    """
    Topic names and ids for conversions, with placeholders for unknown ids.

    Attributes:
        known: Captured ids and names.
    """

    def __init__(self) -> None:
        self.known = TopicIds()

    def topic_id(self, name: str) -> UUID:
        """Return the id of a topic; zero if unknown."""
        if name.startswith(_UNKNOWN_ID):
            return UUID(name.removeprefix(_UNKNOWN_ID))
        return self.known.topic_id(name) or NO_ID

    def topic_name(self, topic_id: UUID) -> str:
        """Return the name of a topic id, or a placeholder."""
        return self.known.topic_name(topic_id) or f"{_UNKNOWN_ID}{topic_id}"


def is_unknown_id(name: str) -> bool:
    """Return whether a name is a placeholder for a topic id."""
    return name.startswith(_UNKNOWN_ID)


@cache
def canonical_version(api_key: int) -> int:
    """Return the canonical version of an API."""
    found = declared_api(api_key)
    versions = range(found.request.versions.high, found.request.versions.low - 1, -1)
    by_name = (
        version
        for version in versions
        if not names_topics_by_id(found.request, version)
        and not names_topics_by_id(found.response, version)
    )
    return next(by_name, found.request.versions.high)


def declared_api(api_key: int) -> Api:
    """Return the declaration of an existing API."""
    found = api(api_key)
    assert found is not None
    return found


def canonical_schema(api_key: int, kind: Kind) -> Schema:
    """Return the declaration of a request or response."""
    return declared_api(api_key).schema(kind)


def canonical_body(message: Message, topics: TopicNames) -> Container:
    """
    Convert the body of a decoded message to the canonical version.

    Raises:
        RewriteError: The canonical version cannot express it.
    """
    key, version = message.api_key or 0, message.api_version or 0
    schema, body = canonical_schema(key, message.kind), message.body or {}
    found = converted(schema, body, version, canonical_version(key), topics)
    if schema is ListOffsetsResponse and version == 0:
        for old, new in zip(_partitions(body), _partitions(found), strict=True):
            new["offset"] = next(iter(old["old_style_offsets"]), -1)
    return found


def response_frame(
    request: Message, body: Mapping[str, Any], topics: TopicNames, version: int | None = None
) -> bytes:
    """
    Encode a canonical response in the version of a request.

    Args:
        request: The request.
        body: The canonical response.
        topics: Topic names and ids.
        version: Overrides the version of the request.

    Raises:
        RewriteError: The version cannot express the response.
        EncodeError: A value does not fit its field.
    """
    key = request.api_key or 0
    version = request.api_version or 0 if version is None else version
    schema = canonical_schema(key, "response")
    found = converted(schema, body, canonical_version(key), version, topics)
    if schema is ListOffsetsResponse and version == 0:
        for new, old in zip(_partitions(body), _partitions(found), strict=True):
            old["old_style_offsets"] = [new["offset"]] if new["offset"] >= 0 else []
    shape = codecs_of(key, version)
    head = _CORRELATION.pack(request.correlation_id or 0) + bytes(shape.response_header)
    return head + shape.response.build(found)


def _partitions(body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    return (part for topic in body["topics"] for part in topic["partitions"])


def converted(
    schema: Schema, body: Mapping[str, Any], old: int, new: int, topics: TopicNames
) -> Container:
    """Convert a body between versions; drop fields the new version lacks."""
    return convert(schema, body, old, new, topics, [], may_lose=True)


def zero_body(schema: Schema, version: int) -> Container:
    """Return a body with default values."""
    fields = (field for field in schema.fields if version in field.versions)
    return Container({field.name: field.zero(version) for field in fields})
