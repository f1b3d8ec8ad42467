"""
Resynchronises a stream that is out of sync: finds the next plausible frame.

Used at the beginning of a connection, in the middle of one where the capture began, and after a
gap. A candidate is accepted if its declaration consumes it to the last byte, or if its header is
readable and its size leads exactly to the end of a packet or to the next plausible header; without
a client id both are required, or the beginning of a packet. An incomplete candidate is awaited if
it is plausible enough; one without a captured end is accepted if all its available bytes fit.

Hostile bytes can make many overlapping candidates. The decoding of candidates is therefore limited
to so many tries for each byte on average (`_may_try`), and searched bytes are not searched again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dissector.capture.columns import NEVER
from dissector.protocol.frame_limits import MAX_FRAME_BYTES
from dissector.protocol.messages import decode_request, decode_response
from tests.reference.correlation.framer import Framer, FrameValidator
from tests.reference.correlation.open_requests import OpenRequests
from tests.reference.correlation.plausible_frames import (
    HEADER_BYTES,
    decodes_exactly,
    find_response,
    has_client_id,
    is_exact,
    plausible_request_size,
    request_candidates,
    unknown_request_size,
)

MIN_RESPONSE_RUN = 3
"""Responses with ascending correlation ids that identify a broker without a captured client."""

MAX_AWAITED_BYTES = 1 << 20
"""The maximum size of an awaited response inside a packet."""

MAX_TRIES_PER_BYTE = 16
"""Average number of tries of a byte as part of a candidate."""

ALWAYS_TRIED_BYTES = 8 << 20
"""Number of bytes that may be tried in any case."""

MAX_VARINT_BYTES = 5
"""The longest encoding of a length: an unsigned varint."""
MAX_PADDED_BYTES = 1 << 20
"""The maximum size of an incomplete request that is padded with zeros for a trial."""


class StreamBreak(NamedTuple):
    """
    A place in a stream after which no bytes follow immediately.

    Attributes:
        side: Its stream.
        may_be_partial: Whether an incomplete frame is plausible here: the capture truncated the
            packet, or ended in a stream that is complete from its beginning.
        missing: Number of missing bytes.
    """

    side: int
    may_be_partial: bool
    missing: int = 0


def sync_at_request(
    stream: Framer, validate: FrameValidator, stream_break: StreamBreak | None
) -> bool:
    """
    Synchronise a stream at the first plausible request; return whether one exists.

    Args:
        stream: Out of sync.
        validate: Validates the frames once in sync.
        stream_break: Where the available bytes end; if that is in this stream, incomplete
            candidates are accepted now or never.
    """
    buffer = stream.buffer
    if _sync_at_unknown_request(stream, validate):
        return True
    for at in request_candidates(buffer, stream.scanned - stream.base):
        size = plausible_request_size(buffer, at)
        if size is None:
            continue
        end = at + 4 + size
        if size > stream.limit:
            # Larger than any broker accepts: text taken for a size, not a request.
            is_plausible = (
                size <= MAX_FRAME_BYTES
                and has_client_id(buffer, at)
                and stream.starts_packet(at)
                and _prefix_decodes(stream, at, size)
            )
        elif end <= len(buffer):
            is_plausible = _is_request_at(stream, at, size)
        elif stream_break is not None and stream_break.side == stream.side:
            is_plausible = (
                stream_break.may_be_partial
                and has_client_id(buffer, at)
                and stream.starts_packet(at)
                and _prefix_decodes(stream, at, size)
            )
        elif _is_worth_waiting(stream, at, size):
            stream.scanned = stream.base + at
            return False
        else:
            is_plausible = False
        if is_plausible:
            stream.sync_at(at, validate)
            return True
    stream.scanned = max(stream.scanned, stream.end_of_buffer - HEADER_BYTES + 1)
    return False


def _sync_at_unknown_request(stream: Framer, validate: FrameValidator) -> bool:
    """Synchronise at a request of an unknown API, if it fills its packets exactly."""
    if (
        not stream.at_packet_start
        or len(stream.buffer) < HEADER_BYTES
        or stream.scanned > stream.base
    ):
        return False
    size = unknown_request_size(stream.buffer, 0, stream.limit)
    if size is None or not stream.ends_packet(4 + size):
        return False
    stream.sync_at(0, validate)
    return True


def _is_request_at(stream: Framer, at: int, size: int) -> bool:
    """Return whether a complete candidate is a request."""
    end = at + 4 + size
    named, ends_plausibly = has_client_id(stream.buffer, at), _ends_plausibly(stream, end)
    if named and ends_plausibly:
        return True
    # A small body of numbers decodes by chance: without a client id its place must fit too.
    is_placed = named or ends_plausibly or stream.starts_packet(at)
    return (
        is_placed and _may_try(stream, size) and decodes_exactly(bytes(stream.buffer[at + 4 : end]))
    )


def _is_worth_waiting(stream: Framer, at: int, size: int) -> bool:
    """Return whether to wait for a candidate's end; check again after twice as many bytes."""
    if not (has_client_id(stream.buffer, at) or stream.starts_packet(at)):
        return False
    available = len(stream.buffer) - at
    if stream.scanned == stream.base + at and available < 2 * stream.checked_bytes:
        return True
    stream.checked_bytes = available
    return _prefix_decodes(stream, at, size)


def _prefix_decodes(stream: Framer, at: int, size: int) -> bool:
    """Return whether an incomplete request, padded with zeros, fits its declaration."""
    if size > MAX_PADDED_BYTES:
        return True
    if not _may_try(stream, size):
        return False
    frame = bytes(stream.buffer[at + 4 : at + 4 + size])
    if not any(frame):
        return False
    message = decode_request(frame + bytes(size - len(frame)))
    if message.schema is None or message.is_assumed:
        return True
    # The last bytes may be a truncated length, which may be anything.
    certain_bytes = len(frame) - MAX_VARINT_BYTES
    return all(
        problem.position is None or problem.position > certain_bytes for problem in message.problems
    )


def _may_try(stream: Framer, size: int) -> bool:
    """Return whether a candidate of this size may be tried against its declaration."""
    stream.tried_bytes += size
    return stream.tried_bytes <= ALWAYS_TRIED_BYTES + MAX_TRIES_PER_BYTE * stream.end


def _ends_plausibly(stream: Framer, end: int) -> bool:
    """Return whether a frame ends with a packet, or before another request."""
    if stream.ends_packet(end):
        return True
    return (
        len(stream.buffer) - end >= HEADER_BYTES
        and plausible_request_size(stream.buffer, end, stream.limit) is not None
    )


def sync_at_response(
    stream: Framer,
    validate: FrameValidator,
    requests: OpenRequests,
    stream_break: StreamBreak | None,
    barrier: int,
) -> bool:
    """
    Synchronise a stream at the first response to a request in flight.

    Responses before it, to requests that were not captured, are included where their sizes lead
    exactly to it.

    Args:
        stream: Out of sync.
        validate: Validates the frames once in sync.
        requests: The requests in flight.
        stream_break: End of the available bytes.
        barrier: Packets from here on may answer later requests.
    """
    stop = len(stream.buffer)
    if barrier != NEVER:
        stop = stream.offset_before_packet(barrier, stream.scanned - stream.base)
    for at in _response_candidates(stream, requests, stop):
        is_response = _is_response_at(stream, at, requests, stream_break)
        if is_response is None:
            stream.scanned = stream.base + at
            return False
        if is_response:
            stream.sync_at(_first_frame_leading_to(stream, at), validate)
            return True
    stop = min(stop, len(stream.buffer) - 7)
    stream.scanned = max(stream.scanned, stream.base + stop)
    return False


def _response_candidates(stream: Framer, requests: OpenRequests, stop: int) -> Iterator[int]:
    """Yield the offsets before `stop` of frames with the correlation id of a request in flight."""
    at, limit, bounds = stream.scanned - stream.base, stream.limit, requests.id_range
    while (at := find_response(stream.buffer, at, stop, limit, *bounds)) >= 0:
        if int.from_bytes(stream.buffer[at + 4 : at + 8], "big", signed=True) in requests:
            yield at
        at += 1


def _is_response_at(
    stream: Framer, at: int, requests: OpenRequests, stream_break: StreamBreak | None
) -> bool | None:
    """Return whether a response begins here; None while that is undecided."""
    buffer = stream.buffer
    size = int.from_bytes(buffer[at : at + 4], "big")
    request = requests.oldest(int.from_bytes(buffer[at + 4 : at + 8], "big", signed=True))
    end = at + 4 + size
    if stream.packet_at(min(end, len(buffer))) <= request.frame.packet:
        return False
    starts_packet = stream.starts_packet(at)
    if end > len(buffer):
        if stream_break is None or stream_break.side != stream.side:
            return None if starts_packet or size <= MAX_AWAITED_BYTES else False
        return (
            starts_packet
            and stream_break.may_be_partial
            and stream_break.missing == end - len(buffer)
        )
    if starts_packet and stream.ends_packet(end):
        return True
    if not _may_try(stream, size):
        return False
    frame = bytes(buffer[at + 4 : end])
    # Zeros are a valid response to request 0 in many declarations, and occur in many records.
    return any(frame) and is_exact(decode_response(frame, request.api_key, request.api_version))


def _first_frame_leading_to(stream: Framer, target: int) -> int:
    """Return the first packet start with frame sizes that lead exactly to a target."""
    seen = set[int]()
    for start in stream.packet_starts():
        if start >= target:
            break
        at = start
        while at < target and at not in seen:
            seen.add(at)
            size = int.from_bytes(stream.buffer[at : at + 4], "big", signed=True)
            if size < 4:
                break
            at += 4 + size
        if at == target:
            return start
    return target


def sync_without_requests(
    stream: Framer, validate: FrameValidator, minimum: int = MIN_RESPONSE_RUN
) -> bool:
    """
    Synchronise a stream at responses without requests, by their ascending ids.

    Args:
        stream: Out of sync.
        validate: Validates the frames once in sync.
        minimum: Least number of responses; fewer than usual must end with a packet.
    """
    start = find_response_run(stream, minimum)
    if start is None:
        return False
    stream.sync_at(start, validate)
    return True


def find_response_run(stream: Framer, minimum: int = MIN_RESPONSE_RUN) -> int | None:
    """Return the offset of a run of responses with ascending ids; None without one."""
    buffer = stream.buffer
    for start in stream.packet_starts():
        at, ids = start, list[int]()
        while len(ids) < minimum and len(buffer) - at >= 8:
            size = int.from_bytes(buffer[at : at + 4], "big", signed=True)
            ids.append(int.from_bytes(buffer[at + 4 : at + 8], "big", signed=True))
            at += 4 + size
            if size < 4 or at > len(buffer) or ids[-1] < 0 or ids[-1] != ids[0] + len(ids) - 1:
                break
        else:
            if len(ids) == minimum and (minimum == MIN_RESPONSE_RUN or stream.ends_packet(at)):
                return start
    return None
