"""
Which frames the fast path can process: the checks of `frame_checks` and `resync` for the kernel.

A frame that fails them may be Kafka all the same; then the slow path decides
(`ConnectionCorrelator`). So a check here may be stricter than those, and never laxer.
"""

from __future__ import annotations

import numpy as np

from dissector.capture.integers import u16, u32
from dissector.engine.correlation.both_paths.correlator_rows import (
    ApiLimits,
    CorrelatorState,
    Counts,
)
from dissector.engine.correlation.both_paths.frame_checks import (
    CLIENT_ID_BYTES,
    HEADER_BYTES,
    NEWER_VERSIONS,
)
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import U8
from dissector.protocol.apis import api, api_keys
from dissector.protocol.context import per_schemas
from dissector.protocol.expected_response import expects_response
from dissector.protocol.headers import (
    CONTROLLED_SHUTDOWN,
    PRODUCE,
    SASL_HANDSHAKE,
    request_header_version,
)
from dissector.protocol.schema import split_tagged

FAST_PATH, SLOW_PATH, API_NOT_LOADED = range(3)
"""
The result of a check: the fast path, the slow path, or an API with versions to load first.
"""

MIN_REQUEST_BYTES, MIN_RESPONSE_BYTES = 10, 4
"""Sizes of the smallest frames of the fast path."""

SIZE_BYTES = 4
"""Length of the size before each frame of a stream."""

NOT_DUE, DUE, UNDECIDED = range(3)
"""Whether a response is due."""

MAX_KEYS = 1024
"""API keys and versions that the table has room for; a vendor's own keys begin above 500."""

UNKNOWN, NOT_LOADED = -1, -2
"""Instead of the newest version of an API: it does not exist, or is not loaded yet."""

TEXT, SHORT_TEXT, TAGS = 1, 2, 4
"""The fields before the acks of a Produce request: a string, a compact one; tags in the header."""

_VERSIONS = 32
_TLS_FROM = 0x14


def new_api_limits() -> ApiLimits:
    """Return the limits of APIs before `load_api` fills them as APIs are met: MAX_KEYS of each."""
    newest, acks_form = np.full((2, MAX_KEYS), UNKNOWN, np.int64)
    newest[[key for key in api_keys().values() if key < MAX_KEYS]] = NOT_LOADED
    return ApiLimits._make((newest, acks_form))


def load_api(api_limits: ApiLimits, key: int) -> None:
    """Load the limits of an API."""
    found = api(key)
    api_limits.newest[key] = found.request.versions.high + NEWER_VERSIONS if found else UNKNOWN
    if found is None or key != PRODUCE:
        return
    for version in found.request.versions:
        untagged, _ = split_tagged(found.request.fields, version)
        names = [field.name for field in untagged]
        if "acks" not in names:
            continue
        texts = [field.type for field in untagged][: names.index("acks")]
        if texts not in ([], ["string"]):
            api_limits.newest[key] = UNKNOWN  # the slow path reads all of its versions
            return
        form = (SHORT_TEXT if version in found.request.flexible else TEXT) if texts else 0
        tags = TAGS if request_header_version(PRODUCE, version) == 2 else 0
        api_limits.acks_form[version] = form | tags


@device_function
def signed16(data: U8, at: int) -> int:
    """Return two bytes, highest first, as two's complement."""
    return int((u16(data, at) ^ 0x8000) - 0x8000)


@device_function
def signed32(data: U8, at: int) -> int:
    """Return four bytes, highest first, as two's complement."""
    return int((u32(data, at) ^ 0x80000000) - 0x80000000)


@device_function
def check_frame(
    state: CorrelatorState, data: U8, at: int, available: int, end: int, is_request: int
) -> int:
    """
    Check a frame of known size, limited to its available bytes.

    Args:
        state: Of the correlator.
        data: Bytes that contain the frame.
        at: Position of its size.
        available: Number of its available bytes, or more.
        end: Where `data` ends.
        is_request: Whether it is a request.
    """
    size, limits = signed32(data, at), state.api_limits
    if (
        size < (MIN_REQUEST_BYTES if is_request else MIN_RESPONSE_BYTES)
        or size > state.counts.max_frame_bytes
    ):
        return SLOW_PATH
    if not is_request or available < HEADER_BYTES:
        return FAST_PATH
    outcome = check_request_header(data, at, size, state.counts, limits)
    if outcome != FAST_PATH or available < 4 + size or u16(data, at + 4) != PRODUCE:
        return outcome
    due = response_due(data, at, min(at + 4 + size, end), limits)
    return SLOW_PATH if due == UNDECIDED else FAST_PATH


@device_function
def check_request_header(
    data: U8, at: int, size: int, counts: Counts, api_limits: ApiLimits
) -> int:
    """Check that a request with a complete header is of a known API and version."""
    key = u16(data, at + 4)
    version = u16(data, at + 6)
    client_id = signed16(data, at + 12)
    if key >= MAX_KEYS:
        return SLOW_PATH
    if api_limits.newest[key] == NOT_LOADED:
        counts.missing_api = key
        return API_NOT_LOADED
    if version > api_limits.newest[key] or client_id < -1 or client_id > size - 10:
        return SLOW_PATH
    is_special = key in (SASL_HANDSHAKE, CONTROLLED_SHUTDOWN)
    return SLOW_PATH if is_special and version == 0 else FAST_PATH


@device_function
def response_due(data: U8, at: int, end: int, api_limits: ApiLimits) -> int:
    """Return whether a Produce request, which is there up to `end`, expects a response."""
    form = api_limits.acks_form[u16(data, at + 6)]
    if form == UNKNOWN:
        return DUE
    at += HEADER_BYTES + max(signed16(data, at + 12), 0)
    if form & TAGS:
        if at >= end or data[at] != 0:
            return UNDECIDED
        at += 1
    if form & TEXT:
        if at + 2 > end or signed16(data, at) < -1:
            return UNDECIDED
        at += 2 + max(signed16(data, at), 0)
    elif form & SHORT_TEXT:
        if at >= end or data[at] >= 128:
            return UNDECIDED
        at += max(int(data[at]), 1)
    if at + 2 > end:
        return UNDECIDED
    return NOT_DUE if u16(data, at) == 0 else DUE


def is_response_due(frame: bytes) -> bool:
    """Return whether a request expects a response, as `expects_response`, which decodes it."""
    if frame[:2] != PRODUCE.to_bytes(2, "big"):
        return True
    client_id = int.from_bytes(frame[8:10], "big", signed=True)
    has_client_id = (
        len(frame) >= MIN_REQUEST_BYTES and -1 <= client_id <= len(frame) - MIN_REQUEST_BYTES
    )
    if has_client_id and int.from_bytes(frame[2:4], "big") < MAX_KEYS:
        due = response_due(memoryview(frame), -SIZE_BYTES, len(frame), _produce_rules())
        if due != UNDECIDED:
            return bool(due == DUE)
    return expects_response(frame)


@per_schemas
def _produce_rules() -> ApiLimits:
    api_limits = new_api_limits()
    load_api(api_limits, PRODUCE)
    return ApiLimits(*(memoryview(column) for column in api_limits))


@device_function
def check_first_request(
    data: U8, at: int, length: int, counts: Counts, api_limits: ApiLimits
) -> int:
    """
    Check the first bytes of a client: a request with a client id.

    It is complete, and ends with its packet or is followed by another request.
    """
    if length < HEADER_BYTES or data[at] >= _TLS_FROM:
        return SLOW_PATH
    outcome = check_request_start(data, at, at + length, counts, api_limits)
    if outcome != FAST_PATH:
        return outcome
    after = at + 4 + u32(data, at)
    if after > at + length or u16(data, at + 6) >= _VERSIONS or signed16(data, at + 12) < 2:
        return SLOW_PATH
    if after == at + length:
        return FAST_PATH
    if after + HEADER_BYTES > at + length:
        return SLOW_PATH
    return check_request_start(data, after, at + length, counts, api_limits)


@device_function
def check_request_start(data: U8, at: int, end: int, counts: Counts, api_limits: ApiLimits) -> int:
    """Check that a plausible request begins here, as `plausible_request_size` does."""
    size = signed32(data, at)
    if size < MIN_REQUEST_BYTES or size > counts.max_frame_bytes:
        return SLOW_PATH
    outcome = check_request_header(data, at, size, counts, api_limits)
    if outcome != FAST_PATH:
        return outcome
    client_id = signed16(data, at + 12)
    if client_id > CLIENT_ID_BYTES:
        return SLOW_PATH
    at += HEADER_BYTES
    while client_id > 0 and at < end:
        if data[at] < 0x20 or data[at] >= 0x7F:
            return SLOW_PATH
        client_id -= 1
        at += 1
    return FAST_PATH


@Kernel
def find_response(
    data: U8, start: int, stop: int, max_size: int, lowest_id: int, highest_id: int
) -> int:
    """
    Return the offset of the first frame with a plausible size and correlation id of a response.

    Args:
        data: The bytes to search; a frame's size and id are within it.
        start: The first offset to try.
        stop: The end of the offsets to try.
        max_size: The largest size of a frame.
        lowest_id: The lowest id of a request in flight.
        highest_id: The highest one.

    Returns:
        The offset; -1 without one.
    """
    for at in range(start, min(stop, len(data) - 7)):
        if lowest_id <= signed32(data, at + 4) <= highest_id and (
            MIN_RESPONSE_BYTES <= signed32(data, at) <= max_size
        ):
            return at
    return -1
