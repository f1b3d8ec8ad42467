"""
Which frames are plain: the rules of `recognise` and `entry` as the loop in `pairing` asks them.

What is not plain may be Kafka all the same; then the objects say so (`Conversation`). So a rule
here may be stricter than theirs, and never laxer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dissector.capture.integers import u16, u32
from dissector.engine.correlation.frame_checks import CLIENT_ID_BYTES, HEADER_BYTES, NEWER_VERSIONS
from dissector.engine.correlation.state_columns import MAX_FRAME, WANTED
from dissector.engine.tables.exchange_table import Ints
from dissector.kernel import device_function
from dissector.protocol.apis import api, api_keys
from dissector.protocol.context import per_schemas
from dissector.protocol.headers import (
    CONTROLLED_SHUTDOWN,
    PRODUCE,
    SASL_HANDSHAKE,
    request_header_version,
)
from dissector.protocol.messages import expects_response
from dissector.protocol.schema import split_tagged

PLAIN, ODD, UNREAD = range(3)
"""What a rule says: plain, for the objects, or that the versions of an API are wanted first."""

LEAST_REQUEST, LEAST_RESPONSE = 10, 4
"""Sizes of the smallest plain frames."""

SIZE_BYTES = 4
"""Stands before a frame in its stream."""

NOT_DUE, DUE, UNSURE = range(3)
"""Whether a response is due."""

KEYS = 1024
"""Keys and versions that the rules have room for; a vendor's own keys begin above 500."""

UNKNOWN, UNASKED = -1, -2
"""Stands for the newest version of an API that there is not, or that was not asked for yet."""

TEXT, SHORT_TEXT, TAGS = 1, 2, 4
"""What stands before the acks of a Produce request: a text, a compact one; tags in the header."""

_VERSIONS = 32
_TLS_FROM = 0x14


def new_rules() -> Ints:
    """
    Return what the rules go by, [KEYS, 2], yet to be filled by `learn` as APIs are met.

    The newest believable version of the API of each key, and what stands before the acks of a
    Produce request of each version.
    """
    rules = np.full((KEYS, 2), UNKNOWN, np.int64)
    rules[[key for key in api_keys().values() if key < KEYS], 0] = UNASKED
    return rules


def learn(rules: Ints, key: int) -> None:
    """Put down the versions of an API."""
    found = api(key)
    rules[key, 0] = found.request.versions.high + NEWER_VERSIONS if found else UNKNOWN
    if found is None or key != PRODUCE:
        return
    for version in found.request.versions:
        plain, _ = split_tagged(found.request.fields, version)
        names = [field.name for field in plain]
        if "acks" not in names:
            continue
        texts = [field.type for field in plain][: names.index("acks")]
        if texts not in ([], ["string"]):
            rules[key, 0] = UNKNOWN  # the objects read all of its versions
            return
        form = (SHORT_TEXT if version in found.request.flexible else TEXT) if texts else 0
        tags = TAGS if request_header_version(PRODUCE, version) == 2 else 0
        rules[version, 1] = form | tags


@device_function
def signed16(data: Any, at: int) -> int:
    """Return two bytes, highest first, as two's complement."""
    return int((u16(data, at) ^ 0x8000) - 0x8000)


@device_function
def signed32(data: Any, at: int) -> int:
    """Return four bytes, highest first, as two's complement."""
    return int((u32(data, at) ^ 0x80000000) - 0x80000000)


@device_function
def is_plain(data: Any, at: int, there: int, asks: Any, end: int, numbers: Any, rules: Any) -> int:
    """
    Tell whether a frame of which the size is there is plain, as far as can be told.

    Args:
        data: Where it is.
        at: Where its size begins.
        there: How many bytes of it are there, or more.
        asks: Whether it is a request.
        end: Where `data` ends.
        numbers: Of the loop.
        rules: See `new_rules`.
    """
    size = signed32(data, at)
    if size < (LEAST_REQUEST if asks else LEAST_RESPONSE) or size > numbers[MAX_FRAME]:
        return ODD
    if not asks or there < HEADER_BYTES:
        return PLAIN
    said = is_plain_request(data, at, size, numbers, rules)
    if said != PLAIN or there < 4 + size or u16(data, at + 4) != PRODUCE:
        return said
    due = response_due(data, at, min(at + 4 + size, end), rules)
    return ODD if due == UNSURE else PLAIN


@device_function
def is_plain_request(data: Any, at: int, size: int, numbers: Any, rules: Any) -> int:
    """Tell whether a request whose header is there is one of a known API and version."""
    key = u16(data, at + 4)
    version = u16(data, at + 6)
    client_id = signed16(data, at + 12)
    if key >= KEYS:
        return ODD
    if rules[key, 0] == UNASKED:
        numbers[WANTED] = key
        return UNREAD
    if version > rules[key, 0] or client_id < -1 or client_id > size - 10:
        return ODD
    odd = key in (SASL_HANDSHAKE, CONTROLLED_SHUTDOWN)
    return ODD if odd and version == 0 else PLAIN


@device_function
def response_due(data: Any, at: int, end: int, rules: Any) -> int:
    """Tell whether a plain Produce request, which is there up to `end`, is answered."""
    form = rules[u16(data, at + 6), 1]
    if form == UNKNOWN:
        return DUE
    at += HEADER_BYTES + max(signed16(data, at + 12), 0)
    if form & TAGS:
        if at >= end or data[at] != 0:
            return UNSURE
        at += 1
    if form & TEXT:
        if at + 2 > end or signed16(data, at) < -1:
            return UNSURE
        at += 2 + max(signed16(data, at), 0)
    elif form & SHORT_TEXT:
        if at >= end or data[at] >= 128:
            return UNSURE
        at += max(int(data[at]), 1)
    if at + 2 > end:
        return UNSURE
    return NOT_DUE if u16(data, at) == 0 else DUE


def is_response_due(frame: bytes) -> bool:
    """Tell whether a request is answered, as `expects_response` does, which decodes it."""
    if frame[:2] != PRODUCE.to_bytes(2, "big"):
        return True
    client_id = int.from_bytes(frame[8:10], "big", signed=True)
    fits = len(frame) >= LEAST_REQUEST and -1 <= client_id <= len(frame) - LEAST_REQUEST
    if fits and int.from_bytes(frame[2:4], "big") < KEYS:
        due = response_due(memoryview(frame), -SIZE_BYTES, len(frame), _produce_rules())
        if due != UNSURE:
            return bool(due == DUE)
    return expects_response(frame)


@per_schemas
def _produce_rules() -> Ints:
    rules = new_rules()
    learn(rules, PRODUCE)
    return rules


@device_function
def opens_kafka(data: Any, at: int, length: int, numbers: Any, rules: Any) -> int:
    """
    Tell whether the first bytes that a client sends are plainly a request.

    It has a client id, is all there, and ends with its packet or leads on to another request.
    """
    if length < HEADER_BYTES or data[at] >= _TLS_FROM:
        return ODD
    said = has_header(data, at, at + length, numbers, rules)
    if said != PLAIN:
        return said
    after = at + 4 + u32(data, at)
    if after > at + length or u16(data, at + 6) >= _VERSIONS or signed16(data, at + 12) < 2:
        return ODD
    if after == at + length:
        return PLAIN
    if after + HEADER_BYTES > at + length:
        return ODD
    return has_header(data, after, at + length, numbers, rules)


@device_function
def has_header(data: Any, at: int, end: int, numbers: Any, rules: Any) -> int:
    """Tell whether a request can plainly be believed to begin here, as `request_header` does."""
    size = signed32(data, at)
    if size < LEAST_REQUEST or size > numbers[MAX_FRAME]:
        return ODD
    said = is_plain_request(data, at, size, numbers, rules)
    if said != PLAIN:
        return said
    client_id = signed16(data, at + 12)
    if client_id > CLIENT_ID_BYTES:
        return ODD
    at += HEADER_BYTES
    while client_id > 0 and at < end:
        if data[at] < 0x20 or data[at] >= 0x7F:
            return ODD
        client_id -= 1
        at += 1
    return PLAIN
