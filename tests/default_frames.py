"""Frames for tests: whole requests and responses, with bodies at their defaults."""

from __future__ import annotations

from typing import Any

from dissector.protocol.apis import api
from dissector.protocol.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from dissector.protocol.schema import Schema


def body(schema: Schema, version: int, /, **values: Any) -> bytes:
    """Encode a body; missing fields are zero."""
    zeros = {f.name: f.zero(version) for f in schema.fields if version in f.versions}
    return schema.codec(version).build(zeros | values)


def request(
    key: int, version: int, correlation_id: int, client_id: str | None = "test", /, **values: Any
) -> bytes:
    """Return a request with its size prefix."""
    header = {
        "request_api_key": key,
        "request_api_version": version,
        "correlation_id": correlation_id,
        "client_id": client_id,
    }
    head = RequestHeader.codec(request_header_version(key, version)).build(header)
    return sized(head + body(api(key).request, version, **values))


def response(key: int, version: int, correlation_id: int, /, **values: Any) -> bytes:
    """Return a response with its size prefix."""
    head = ResponseHeader.codec(response_header_version(key, version))
    data = head.build({"correlation_id": correlation_id})
    return sized(data + body(api(key).response, version, **values))


def sized(data: bytes) -> bytes:
    """Add the size prefix to a frame."""
    return len(data).to_bytes(4, "big") + data
