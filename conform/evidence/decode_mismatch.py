"""
Finds messages that do not match their schema, and the broken rule.

To explain a mismatch, the bytes are decoded in alternative ways: with the other header version, in
another body version, with a compact client id. An alternative that consumes every byte is the
explanation.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import NamedTuple

from conform.evidence.non_canonical_values import non_canonical_check
from dissector.errors import DecodeError, EncodeError
from dissector.protocol.apis import api
from dissector.protocol.headers import API_VERSIONS, RequestHeader, ResponseHeader
from dissector.protocol.messages import UNSUPPORTED_VERSION, Message

_UNSUPPORTED_VERSION_BYTES = UNSUPPORTED_VERSION.to_bytes(2, "big")
_MIN_BODY_BYTES = 4
"""Smaller bodies match many schemas by chance."""


class DecodeMismatch(NamedTuple):
    """
    A decode mismatch.

    Attributes:
        rule: The broken rule.
        found: The mismatch.
        path: The field of the body; empty for the header.
        is_tolerated: Whether Kafka accepts the message nevertheless.
    """

    rule: str
    found: str
    path: str = ""
    is_tolerated: bool = False


def decode_mismatch_of(message: Message) -> DecodeMismatch | None:
    """Return why a complete message does not match its schema; None if it does."""
    left_bytes = len(message.frame) - message.body_end
    if message.body is not None and not left_bytes:
        return None
    key, version = message.api_key, message.api_version
    if key is None or version is None or message.schema is None:
        return None
    for rule, found, frame, header, body in _alternatives(message, key, version):
        if _decodes_as(message, frame, header, key, body):
            return DecodeMismatch(rule, found)
    if message.body is not None:
        found = f"bytes left over after the body: {left_bytes}"
        return DecodeMismatch("F02", found, is_tolerated=True)
    first = message.problems[0] if message.problems else None
    return DecodeMismatch(
        "F02", first.what if first else "the body can't be decoded", _failed_path(message)
    )


def _failed_path(message: Message) -> str:
    """Return the field that could not be decoded."""
    path = message.problems[0].path if message.problems else ""
    return path.removeprefix(message.kind).removeprefix(".")


def _alternatives(
    message: Message, key: int, version: int
) -> Iterator[tuple[str, str, bytes, int, int]]:
    """Yield ways to decode: rule if it fits, description, bytes, header version, body version."""
    frame, header = message.frame, message.header[1]
    if message.kind == "request":
        if header > 0:
            other = 3 - header
            found = f"the header has version {other} instead of {header}"
            yield "F08", found, frame, other, version
        classic = _classic_client_id(frame) if header == 2 else None
        if classic is not None:
            yield "F11", "the client id is encoded as a compact string", classic, header, version
        return
    rule = "F09" if key == API_VERSIONS else "F10"
    found = f"the header has version {1 - header} instead of {header}"
    yield rule, found, frame, 1 - header, version
    declared = api(key)
    versions = declared.response.versions if declared else ()
    for other in sorted(versions, key=lambda each: abs(each - version)):
        if other != version:
            flexible = Message("response", b"", 0, key, other).header[1]
            found = f"the body has version {other} instead of {version}"
            if key == API_VERSIONS and frame[4:6] == _UNSUPPORTED_VERSION_BYTES:
                found = f"the error response has version {other}, not 0"
                yield "V01", found, frame, flexible, other
            else:
                yield "F07", found, frame, flexible, other


def _classic_client_id(frame: bytes) -> bytes | None:
    """Return a request with its compact client id rewritten in the int16 form."""
    length = frame[8] - 1 if len(frame) > 8 else 0x7F
    if length >= 0x7F or len(frame) < 9 + length:
        return None
    return frame[:8] + length.to_bytes(2, "big", signed=True) + frame[9:]


def _decodes_as(message: Message, frame: bytes, header: int, key: int, version: int) -> bool:
    """Return whether the bytes decode in these versions, and encode to the same bytes."""
    declared = api(key)
    schema = RequestHeader if message.kind == "request" else ResponseHeader
    stream = io.BytesIO(frame)
    try:
        schema.codec(header).parse_stream(stream)
        if declared is None or len(frame) - stream.tell() < _MIN_BODY_BYTES:
            return False
        start, declaration = stream.tell(), declared.schema(message.kind)
        body = declaration.codec(version).parse_stream(stream)
        if non_canonical_check(declaration, version)(body):
            return False
        return bool(declaration.codec(version).build(body) == frame[start:])
    except (DecodeError, EncodeError):
        return False
