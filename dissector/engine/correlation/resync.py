"""
Where a stream that is out of step can be entered: the next believable frame.

Used at the beginning of a connection, in the middle of one where the capture began, and after a
gap. A candidate is entered when its declaration consumes it to the last byte, or when its header is
readable and its size leads exactly to the end of a packet or to the next believable header; of one
without a client id both are asked, or the beginning of a packet. A candidate whose end has not come
yet is waited for, if enough speaks for it; one whose end never comes is believed if all that is
there fits.

Hostile bytes can make many candidates that overlap. Each byte is therefore tried against
declarations only so often on average (`_may_try`), and what was searched is not searched again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from dissector.capture.columns import NEVER
from dissector.engine.correlation.frame_checks import (
    HEADER_BYTES,
    decodes_exactly,
    has_client_id,
    is_exact,
    plausible_request_size,
    request_candidates,
    unknown_request_size,
)
from dissector.engine.correlation.framer import MAX_FRAME_BYTES, Framer, FrameValidator
from dissector.engine.correlation.open_requests import OpenRequests
from dissector.protocol.messages import decode_request, decode_response

MIN_RESPONSE_RUN = 3
"""
How many responses with ascending correlation ids make a broker whose client is not to be seen.
"""

MAX_AWAITED_BYTES = 1 << 20
"""How large a response may be that is waited for though it does not begin a packet."""

MAX_TRIES_PER_BYTE = 16
"""How often a byte may be tried as part of a candidate, on average."""

ALWAYS_TRIED_BYTES = 8 << 20
"""How many bytes may be tried in any case."""

MAX_VARINT_BYTES = 5
"""The longest that a length can be: an unsigned varint."""

MAX_PADDED_BYTES = 1 << 20
"""How large a request may be that is filled up to be tried, where not all of it is there."""

_RESPONSE = re.compile(rb"(?s)(?!\x00{3}[\x00-\x03])(?=[\x00-\x7f]...(....))")


class StreamBreak(NamedTuple):
    """
    Where a stream has no more bytes that follow at once.

    Attributes:
        side: Of which stream.
        may_be_partial: Whether a frame may be believed that is not all there: the capture cut the
            packet, or ended in a stream that is there from its beginning.
        missing: How many bytes are missing there.
    """

    side: int
    may_be_partial: bool
    missing: int = 0


def sync_at_request(stream: Framer, judge: FrameValidator, broken: StreamBreak | None) -> bool:
    """
    Enter a stream at the first believable request; tell whether that was possible.

    Args:
        stream: Out of step.
        judge: Tells frames from garbage once in step.
        broken: Where the bytes that are there have an end; if that is in this stream, candidates
            whose end has not come are believed now or never.
    """
    buffer = stream.buffer
    if _enter_unknown(stream, judge):
        return True
    for at in request_candidates(buffer, stream.scanned - stream.base):
        size = plausible_request_size(buffer, at)
        if size is None:
            continue
        end = at + 4 + size
        if size > stream.limit:
            # Larger than any broker takes is no request, but text taken for a size.
            believed = (
                size <= MAX_FRAME_BYTES
                and has_client_id(buffer, at)
                and stream.starts_packet(at)
                and _begins_well(stream, at, size)
            )
        elif end <= len(buffer):
            believed = _is_request_at(stream, at, size)
        elif broken is not None and broken.side == stream.side:
            believed = (
                broken.may_be_partial
                and has_client_id(buffer, at)
                and stream.starts_packet(at)
                and _begins_well(stream, at, size)
            )
        elif _is_worth_waiting(stream, at, size):
            stream.scanned = stream.base + at
            return False
        else:
            believed = False
        if believed:
            stream.sync_at(at, judge)
            return True
    stream.scanned = max(stream.scanned, stream.end_of_buffer - HEADER_BYTES + 1)
    return False


def _enter_unknown(stream: Framer, judge: FrameValidator) -> bool:
    """Enter at a request that nobody knows, if it is all that its packets hold."""
    if (
        not stream.at_packet_start
        or len(stream.buffer) < HEADER_BYTES
        or stream.scanned > stream.base
    ):
        return False
    size = unknown_request_size(stream.buffer, 0, stream.limit)
    if size is None or not stream.ends_packet(4 + size):
        return False
    stream.sync_at(0, judge)
    return True


def _is_request_at(stream: Framer, at: int, size: int) -> bool:
    """Tell whether a candidate that is all there is a request."""
    end = at + 4 + size
    strong, leads_on = has_client_id(stream.buffer, at), _leads_on(stream, end)
    if strong and leads_on:
        return True
    # A small body of numbers fits by chance: one without a client id must stand in its place.
    placed = strong or leads_on or stream.starts_packet(at)
    return placed and _may_try(stream, size) and decodes_exactly(bytes(stream.buffer[at + 4 : end]))


def _is_worth_waiting(stream: Framer, at: int, size: int) -> bool:
    """Tell whether to wait for the end of a candidate; looks again when twice as much is there."""
    if not (has_client_id(stream.buffer, at) or stream.starts_packet(at)):
        return False
    there = len(stream.buffer) - at
    if stream.scanned == stream.base + at and there < 2 * stream.checked_bytes:
        return True
    stream.checked_bytes = there
    return _begins_well(stream, at, size)


def _begins_well(stream: Framer, at: int, size: int) -> bool:
    """Tell whether what is there of a request fits its declaration, the rest taken as zeros."""
    if size > MAX_PADDED_BYTES:
        return True
    if not _may_try(stream, size):
        return False
    frame = bytes(stream.buffer[at + 4 : at + 4 + size])
    if not any(frame):
        return False
    message = decode_request(frame + bytes(size - len(frame)))
    if message.schema is None:
        return True
    # A length that is cut itself may be anything.
    sure = len(frame) - MAX_VARINT_BYTES
    return all(p.position is None or p.position > sure for p in message.problems)


def _may_try(stream: Framer, size: int) -> bool:
    """Tell whether a candidate of this size may be tried against its declaration."""
    stream.tried_bytes += size
    return stream.tried_bytes <= ALWAYS_TRIED_BYTES + MAX_TRIES_PER_BYTE * stream.end


def _leads_on(stream: Framer, end: int) -> bool:
    """Tell whether a frame's end is the end of a packet or the beginning of another request."""
    if stream.ends_packet(end):
        return True
    return (
        len(stream.buffer) - end >= HEADER_BYTES
        and plausible_request_size(stream.buffer, end, stream.limit) is not None
    )


def sync_at_response(
    stream: Framer,
    judge: FrameValidator,
    waiting: OpenRequests,
    broken: StreamBreak | None,
    horizon: int,
) -> bool:
    """
    Enter a stream at the first response that answers one of the requests that wait.

    Responses before it, to requests that are not in the capture, are entered too where their sizes
    lead exactly to it.

    Args:
        stream: Out of step.
        judge: Tells frames from garbage once in step.
        waiting: The requests.
        broken: Where the bytes that are there have an end.
        horizon: Packets from here on may answer requests that are yet to be told.
    """
    stop = len(stream.buffer)
    if horizon != NEVER:
        stop = stream.offset_before_packet(horizon, stream.scanned - stream.base)
    for at in _response_candidates(stream, waiting, stop):
        believed = _is_answer(stream, at, waiting, broken)
        if believed is None:
            stream.scanned = stream.base + at
            return False
        if believed:
            stream.sync_at(_chain_to(stream, at), judge)
            return True
    stop = min(stop, len(stream.buffer) - 7)
    stream.scanned = max(stream.scanned, stream.base + stop)
    return False


def _response_candidates(stream: Framer, waiting: OpenRequests, stop: int) -> Iterator[int]:
    """Yield the offsets before `stop` of frames with the correlation id of an open request."""
    start = stream.scanned - stream.base
    while (match := _RESPONSE.search(stream.buffer, start, stop + 7)) is not None:
        at = match.start()
        start = at + 1
        if (
            int.from_bytes(match[1], "big", signed=True) in waiting
            and 4 <= int.from_bytes(stream.buffer[at : at + 4], "big") <= stream.limit
        ):
            yield at


def _is_answer(
    stream: Framer, at: int, waiting: OpenRequests, broken: StreamBreak | None
) -> bool | None:
    """Tell whether a response begins here; None while that can't be said yet."""
    buffer = stream.buffer
    size = int.from_bytes(buffer[at : at + 4], "big")
    request = waiting.oldest(int.from_bytes(buffer[at + 4 : at + 8], "big", signed=True))
    end = at + 4 + size
    if stream.packet_at(min(end, len(buffer))) <= request.frame.packet:
        return False
    starts = stream.starts_packet(at)
    if end > len(buffer):
        if broken is None or broken.side != stream.side:
            return None if starts or size <= MAX_AWAITED_BYTES else False
        return starts and broken.may_be_partial and broken.missing == end - len(buffer)
    if starts and stream.ends_packet(end):
        return True
    if not _may_try(stream, size):
        return False
    frame = bytes(buffer[at + 4 : end])
    # Zeros answer request 0 in many declarations, and stand in many records.
    return any(frame) and is_exact(decode_response(frame, request.api_key, request.api_version))


def _chain_to(stream: Framer, target: int) -> int:
    """Return the first beginning of a packet from which frame sizes lead exactly to a target."""
    passed = set[int]()
    for start in stream.packet_starts():
        if start >= target:
            break
        at = start
        while at < target and at not in passed:
            passed.add(at)
            size = int.from_bytes(stream.buffer[at : at + 4], "big", signed=True)
            if size < 4:
                break
            at += 4 + size
        if at == target:
            return start
    return target


def sync_without_requests(
    stream: Framer, judge: FrameValidator, least: int = MIN_RESPONSE_RUN
) -> bool:
    """
    Enter a stream at responses whose requests can't be seen at all: by their ascending ids.

    Args:
        stream: Out of step.
        judge: Tells frames from garbage once in step.
        least: How many there must be; the last of them ends a packet where fewer are enough.
    """
    start = find_response_run(stream, least)
    if start is None:
        return False
    stream.sync_at(start, judge)
    return True


def find_response_run(stream: Framer, least: int = MIN_RESPONSE_RUN) -> int | None:
    """Return where a stream might be so entered; None where nowhere."""
    buffer = stream.buffer
    for start in stream.packet_starts():
        at, ids = start, list[int]()
        while len(ids) < least and len(buffer) - at >= 8:
            size = int.from_bytes(buffer[at : at + 4], "big", signed=True)
            ids.append(int.from_bytes(buffer[at + 4 : at + 8], "big", signed=True))
            at += 4 + size
            if size < 4 or at > len(buffer) or ids[-1] < 0 or ids[-1] != ids[0] + len(ids) - 1:
                break
        else:
            if len(ids) == least and (least == MIN_RESPONSE_RUN or stream.ends_packet(at)):
                return start
    return None
