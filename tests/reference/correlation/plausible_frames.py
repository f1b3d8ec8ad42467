"""
Checks whether bytes are a plausible begin of a Kafka frame.

Kafka is recognised on any port. A request begins with a size, a known API key and version, a
correlation id and a client id of readable text: about forty bits that random bytes do not have. A
response has only its correlation id, so it needs a request in flight with that id. In the middle of
a stream this much is only a candidate: `decodes_exactly` checks it against the declaration as well.

Source: https://kafka.apache.org/protocol#protocol_messages (request and response headers).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from dissector.protocol.apis import api
from dissector.protocol.headers import CONTROLLED_SHUTDOWN
from dissector.protocol.messages import Message, decode_request, decode_response

HEADER_BYTES = 14
"""
What `plausible_request_size` reads: size, API key, version, correlation id, length of the client
id.
"""

CLIENT_ID_BYTES = 249
"""The longest plausible client id in the middle of a stream."""

NEWER_VERSIONS = 4
"""Number of versions beyond the newest known one that are still plausible."""

_HEADER = struct.Struct(">ihhih")
_SIZE_AND_ID = struct.Struct(">ii")
_CANDIDATE = re.compile(
    rb"(?s)(?!\x00{3}[\x00-\x07])"
    rb"(?=[\x00-\x7f]...\x00[\x00-\x7f]\x00[\x00-\x1f]....(?:\xff\xff|\x00[\x00-\xf9]))"
)
_UNREADABLE = re.compile(rb"[\x00-\x1f\x7f]")
_TLS = re.compile(rb"(?s)[\x14-\x17]\x03[\x00-\x04][\x00-\x48].")


MAX_SIZE = 2**31 - 1


def plausible_request_size(data: bytes | bytearray, at: int, limit: int = MAX_SIZE) -> int | None:
    """
    Return the size of the plausible request that begins here; None without one.

    Args:
        data: Bytes of a stream; at least `HEADER_BYTES` from `at` on.
        at: Assumed position of the size of the frame.
        limit: The largest plausible size.
    """
    size, key, version, _, client_id = _HEADER.unpack_from(data, at)
    if not 8 <= size <= limit or not is_plausible_version(key, version):
        return None
    if key == CONTROLLED_SHUTDOWN and version == 0:
        return int(size)
    if client_id > min(size - 10, CLIENT_ID_BYTES) or client_id < -1 or size < 10:
        return None
    if client_id > 0 and not is_readable(data[at + HEADER_BYTES : at + HEADER_BYTES + client_id]):
        return None
    return int(size)


def has_client_id(data: bytes | bytearray, at: int) -> bool:
    """Return whether a plausible header has a client id: without one it is mostly zero bytes."""
    return int.from_bytes(data[at + 12 : at + 14], "big", signed=True) > 1


def is_plausible_version(key: int, version: int) -> bool:
    """Return whether a known API has this version, or may soon have it."""
    found = api(key) if version >= 0 else None
    return found is not None and version <= found.request.versions.high + NEWER_VERSIONS


def is_readable(text: bytes | bytearray) -> bool:
    """Return whether bytes are UTF-8 without control characters."""
    if _UNREADABLE.search(text):
        return False
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def unknown_request_size(data: bytes | bytearray, at: int, limit: int) -> int | None:
    """Return the size of a request of an unknown API or version with a plausible header."""
    size, key, version, _, client_id = _HEADER.unpack_from(data, at)
    is_plausible = 10 <= size <= limit and 0 <= key < 1000 and 0 <= version < 1000
    if not is_plausible or not 0 < client_id <= min(size - 10, CLIENT_ID_BYTES):
        return None
    end = at + HEADER_BYTES + client_id
    return int(size) if is_readable(data[at + HEADER_BYTES : end]) else None


def is_plausible_request(data: bytes | bytearray, at: int) -> bool:
    """
    Return whether a frame can be a request where one is expected, even of an unknown API.

    In sync much less is required than in the middle of a stream: a known API and version, or a
    readable client id.
    """
    size, key, version, _, client_id = _HEADER.unpack_from(data, at)
    if key == CONTROLLED_SHUTDOWN and version == 0:
        return bool(size >= 8)
    if not -1 <= client_id <= size - 10:
        return False
    text = data[at + HEADER_BYTES : at + HEADER_BYTES + max(client_id, 0)]
    return is_plausible_version(key, version) or is_readable(text)


def is_request(frame: bytes) -> bool:
    """Return whether a complete frame is a Kafka request, and not a raw SASL token."""
    if len(frame) < HEADER_BYTES - 4:
        return False
    sized_frame = len(frame).to_bytes(4, "big") + frame
    size = plausible_request_size(sized_frame, 0, len(frame))
    return size is not None and (has_client_id(sized_frame, 0) or decodes_exactly(frame))


def request_candidates(data: bytes | bytearray, start: int) -> Iterator[int]:
    """Yield the offsets of possible request headers, to be checked by `plausible_request_size`."""
    while (match := _CANDIDATE.search(data, start)) is not None:
        yield match.start()
        start = match.start() + 1


def decodes_exactly(frame: bytes) -> bool:
    """
    Return whether a complete frame is a request that its declaration consumes to the last byte.

    A frame of zeros is rejected: it fits many declarations.
    """
    return any(frame) and is_exact(decode_request(frame))


def fits_request(response: bytes, size: int, request: bytes) -> bool:
    """
    Return whether a frame with a request's id can be its response, as far as it was captured.

    Args:
        response: The captured bytes of the frame.
        size: Its declared size.
        request: The request.
    """
    if len(response) != size:
        return True
    key, version = (int.from_bytes(request[at : at + 2], "big", signed=True) for at in (0, 2))
    message = decode_response(response, key, version)
    return message.schema is None or is_exact(message) or message.is_assumed


def is_exact(message: Message) -> bool:
    """Return whether a message was decoded to its last byte."""
    return message.body is not None and not message.faults


def is_tls(data: bytes | bytearray) -> bool:
    """
    Return whether bytes begin with a TLS record.

    Source: RFC 8446, section 5.1 (content type, legacy version, length up to 2^14 + 256).
    """
    return _TLS.match(data) is not None


def find_response(
    data: bytes | bytearray, start: int, stop: int, max_size: int, lowest_id: int, highest_id: int
) -> int:
    """Return the offset of the first frame with a plausible size and correlation id; -1: none."""
    for at in range(start, min(stop, len(data) - 7)):
        size, correlation_id = _SIZE_AND_ID.unpack_from(data, at)
        if lowest_id <= correlation_id <= highest_id and 4 <= size <= max_size:
            return at
    return -1
