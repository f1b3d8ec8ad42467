"""
Whether bytes are a plausible begin of a Kafka frame.

Kafka is recognised on any port. A request begins with a size, a known API key and version, a
correlation id and a client id of readable text: about forty bits that random bytes do not have. A
response has only its correlation id, so it needs a request in flight with that id. In the middle of
a stream this much is only a candidate (`known_apis`).

Source: https://kafka.apache.org/protocol#protocol_messages (request and response headers).
"""

from __future__ import annotations

from dissector.capture.integers import signed16, signed32, u16, u32
from dissector.engine.correlation import known_apis as apis
from dissector.engine.correlation.correlator_arrays import CorrelatorState
from dissector.engine.correlation.correlator_rows import Outcome, Verdict
from dissector.engine.tape.primitive_kernels import varint_at
from dissector.kernel import device_function
from dissector.kernel.arrays import U8
from dissector.protocol.headers import CONTROLLED_SHUTDOWN, PRODUCE, SASL_HANDSHAKE

HEADER_BYTES = 14
"""Size, API key, version, correlation id and length of the client id."""

MIN_REQUEST_BYTES, MIN_RESPONSE_BYTES = 8, 4
"""Sizes of the smallest frames: up to the correlation id."""

MAX_SIZE = 2**31 - 1

_CLIENT_ID_BYTES = 249
"""The longest plausible client id in the middle of a stream."""

_MIN_HEADER = 10
"""Bytes of a header with a client id, without the size."""

_MAX_UNKNOWN = 1000
"""API keys and versions from here on are not plausible, even of unknown APIs."""


@device_function
def check_version(state: CorrelatorState, key: int, version: int) -> int:
    """Return YES if a known API has this version, or may soon have it; NO, or NEEDS_API."""
    newest = state.api_limits.newest
    if key < 0 or key >= len(newest) or version < 0:
        return Verdict.NO
    if newest[key] == apis.NOT_LOADED:
        state.counts.missing_api = key
        return Outcome.NEEDS_API
    return Verdict.YES if version <= newest[key] else Verdict.NO


@device_function
def has_client_id(data: U8, at: int) -> bool:
    """Return whether a plausible header has a client id: without one it is mostly zero bytes."""
    return signed16(data, at + 12) > 1


@device_function
def check_header(state: CorrelatorState, data: U8, at: int, end: int, limit: int) -> int:
    """
    Return whether a plausible request begins here, in the middle of a stream.

    Args:
        state: Of the correlator.
        data: Contains the header.
        at: Where the size is.
        end: Where `data` ends.
        limit: The largest plausible size.
    """
    size, key, version = signed32(data, at), signed16(data, at + 4), signed16(data, at + 6)
    if size < MIN_REQUEST_BYTES or size > limit:
        return Verdict.NO
    outcome = check_version(state, key, version)
    if outcome != Verdict.YES or (key == CONTROLLED_SHUTDOWN and version == 0):
        return outcome
    client_id = signed16(data, at + 12)
    if client_id > min(size - _MIN_HEADER, _CLIENT_ID_BYTES) or client_id < -1:
        return Verdict.NO
    if size < _MIN_HEADER:
        return Verdict.NO
    at += HEADER_BYTES
    if client_id > 0 and not is_readable(data, at, min(at + client_id, end)):
        return Verdict.NO
    return Verdict.YES


@device_function
def is_unknown_request(data: U8, at: int, end: int, limit: int) -> bool:
    """Return whether a header is plausible, whatever the API or version."""
    size, key, version = signed32(data, at), signed16(data, at + 4), signed16(data, at + 6)
    client_id = signed16(data, at + 12)
    if size < _MIN_HEADER or size > limit or key < 0 or version < 0:
        return False
    if key >= _MAX_UNKNOWN or version >= _MAX_UNKNOWN or client_id <= 0:
        return False
    if client_id > min(size - _MIN_HEADER, _CLIENT_ID_BYTES):
        return False
    at += HEADER_BYTES
    return is_readable(data, at, min(at + client_id, end))


@device_function
def check_in_sync(state: CorrelatorState, data: U8, at: int, end: int) -> int:
    """
    Return whether a frame can be a request where one is expected, even of an unknown API.

    In sync much less is required than in the middle of a stream: a known API and version, or a
    readable client id.
    """
    size, key, version = signed32(data, at), signed16(data, at + 4), signed16(data, at + 6)
    if key == CONTROLLED_SHUTDOWN and version == 0:
        return Verdict.YES if size >= MIN_REQUEST_BYTES else Verdict.NO
    client_id = signed16(data, at + 12)
    if client_id < -1 or client_id > size - _MIN_HEADER:
        return Verdict.NO
    outcome = check_version(state, key, version)
    if outcome != Verdict.NO:
        return outcome
    at += HEADER_BYTES
    is_text = is_readable(data, at, min(at + max(client_id, 0), end))
    return Verdict.YES if is_text else Verdict.NO


@device_function
def is_readable(data: U8, at: int, end: int) -> bool:
    """Return whether bytes are UTF-8 without control characters (RFC 3629)."""
    while at < end:
        first = data[at]
        at += 1
        if first < 0x20 or first == 0x7F or 0x80 <= first < 0xC2 or first > 0xF4:
            return False
        if first < 0x80:
            continue
        more = 1 if first < 0xE0 else 2 if first < 0xF0 else 3
        if at + more > end:
            return False
        second = data[at]
        lowest = 0xA0 if first == 0xE0 else 0x90 if first == 0xF0 else 0x80
        highest = 0x9F if first == 0xED else 0x8F if first == 0xF4 else 0xBF
        if second < lowest or second > highest:
            return False
        for each in range(at + 1, at + more):
            if data[each] < 0x80 or data[each] > 0xBF:
                return False
        at += more
    return True


@device_function
def check_usual(state: CorrelatorState, data: U8, at: int, available: int, is_request: bool) -> int:
    """
    Return YES for a frame without rules of its own, as far as its begin shows.

    Args:
        state: Of the correlator.
        data: Bytes that contain the frame.
        at: Position of its size.
        available: Number of its available bytes, or more.
        is_request: Whether it is a request.
    """
    size = signed32(data, at)
    if size > state.counts.max_frame_bytes:
        return Verdict.NO
    if not is_request:
        return Verdict.YES if size >= MIN_RESPONSE_BYTES else Verdict.NO
    if size < _MIN_HEADER:
        return Verdict.NO
    if available < HEADER_BYTES:
        return Verdict.YES
    key, version, client_id = u16(data, at + 4), u16(data, at + 6), signed16(data, at + 12)
    if client_id < -1 or client_id > size - _MIN_HEADER:
        return Verdict.NO
    if version == 0 and (key in (SASL_HANDSHAKE, CONTROLLED_SHUTDOWN)):
        return Verdict.NO
    return check_version(state, key, version)


@device_function
def is_response_due(state: CorrelatorState, data: U8, at: int, end: int) -> bool:
    """
    Return whether a request has a response: every request has, except Produce with acks = 0.

    If the bytes do not show it (a damaged frame, an unknown version), a response is due.

    Args:
        state: Of the correlator.
        data: Bytes that contain the frame.
        at: Position of its size.
        end: Where its captured bytes end.

    Source: Kafka, ProduceRequest.json ("acks").
    """
    if end - at < HEADER_BYTES or u16(data, at + 4) != PRODUCE:
        return True
    version, client_id = u16(data, at + 6), signed16(data, at + 12)
    if version >= apis.VERSIONS or client_id < -1:
        return True
    forms = state.api_limits.before_acks[version]
    at += HEADER_BYTES + max(client_id, 0)
    while forms > 0 and at >= 0:
        at = behind_field(data, at, end, forms & 15)
        forms = forms >> 4
    if forms < 0 or at < 0 or at + 2 > end:
        return True
    return u16(data, at) != 0


@device_function
def behind_field(data: U8, at: int, end: int, form: int) -> int:
    """Return the end of a field before the acks; -1 if it is damaged."""
    length = 0
    if form == apis.TAGS:
        return behind_tags(data, at, end)
    if form == apis.TEXT:
        length, at = (signed16(data, at), at + 2) if at + 2 <= end else (0, -1)
    elif form == apis.BYTES:
        length, at = (signed32(data, at), at + 4) if at + 4 <= end else (0, -1)
    elif form == apis.SHORT_TEXT:
        length, at = varint_at(data, at, end)
        length -= 1
    else:
        length = 1 << (form - apis.FIXED)
    if at < 0 or length < -1 or length > end - at:
        return -1
    return at + max(length, 0)


@device_function
def behind_tags(data: U8, at: int, end: int) -> int:
    """Return the end of a tag section; -1 if it is damaged."""
    left, at = varint_at(data, at, end)
    if at < 0 or left * 2 > end - at:
        return -1
    while left > 0 and at >= 0:
        _, at = varint_at(data, at, end)
        size, at = varint_at(data, at, end) if at >= 0 else (0, -1)
        at = at + size if at >= 0 and size <= end - at else -1
        left -= 1
    return at


@device_function
def is_tls(data: U8, at: int) -> bool:
    """
    Return whether five bytes begin a TLS record.

    Source: RFC 8446, section 5.1 (content type, legacy version, length up to 2^14 + 256).
    """
    is_record = 0x14 <= data[at] <= 0x17 and data[at + 1] == 3
    return is_record and data[at + 2] <= 4 and data[at + 3] <= 0x48


@device_function
def is_kerberos(data: U8, at: int, end: int) -> bool:
    """
    Return whether bytes begin with a frame whose body is the first token of Kerberos.

    Source: RFC 2743, section 3.1, and RFC 4121, section 4.1.
    """
    if end - at < 6 or data[at + 4] != 0x60:
        return False
    size, length, more = signed32(data, at), data[at + 5], 0
    begin = at + 6
    if length >= 0x80:
        more = length & 0x7F
        if more >= 4:
            return False
        length = 0
        for each in range(begin, min(begin + more, end)):
            length = length << 8 | data[each]
        begin += more
    # The identifier 1.2.840.113554.1.2.2, with its type and length.
    if size != 2 + more + length or begin + 11 > end:
        return False
    first, second = u32(data, begin), u32(data, begin + 4)
    third = u16(data, begin + 8) << 8 | data[begin + 10]
    return first == 0x06092A86 and second == 0x4886F712 and third == 0x010202


@device_function
def next_header(data: U8, at: int, end: int) -> int:
    """Return where bytes like the header of a request begin in a range, -1 without any."""
    while at < end:
        if data[at + 6] != 0:
            at += 4 if data[at + 7] != 0 else 1  # a header has zeros at 4 and 6
        elif is_like_header(data, at):
            return at
        else:
            at += 1
    return -1


@device_function
def is_like_header(data: U8, at: int) -> bool:
    """Return whether 14 bytes are like the header of a request."""
    if data[at + 4] != 0 or data[at + 5] >= 128 or data[at + 6] != 0 or data[at + 7] >= 32:
        return False
    if data[at] >= 128:
        return False
    if data[at] == 0 and data[at + 1] == 0 and data[at + 2] == 0 and data[at + 3] < 8:
        return False
    length = data[at + 12] << 8 | data[at + 13]
    return length <= _CLIENT_ID_BYTES or length == 0xFFFF
