"""
Where a stream that is out of step can be entered: the next believable frame.

Used at the beginning of a connection, in the middle of one where the capture began, and after a
gap. A candidate is entered when its declaration consumes it to the last byte, or when its header is
readable and its size leads exactly to the end of a packet or to the next believable header. A
candidate whose end has not come yet is waited for.
"""

from __future__ import annotations

from dissector.engine.frames import Judge, Stream
from dissector.engine.open import OpenRequests
from dissector.engine.recognise import (
    HEADER_BYTES,
    candidates,
    exact,
    fits,
    is_strong,
    request_header,
    unknown_request,
)
from dissector.protocol.messages import decode_response

LONELY_RESPONSES = 3
"""
How many responses with ascending correlation ids make a broker whose client is not to be seen.
"""


def enter_requests(stream: Stream, judge: Judge, ended: bool) -> bool:
    """
    Enter a stream at the first believable request; tell whether that was possible.

    Args:
        stream: Out of step.
        judge: Tells frames from garbage once in step.
        ended: Nothing follows at once on what is there (a gap, or the end of the capture):
            candidates whose end has not come are believed if they begin a packet, or never.
    """
    buffer = stream.buffer
    if _enter_unknown(stream, judge):
        return True
    for at in candidates(buffer, stream.scanned - stream.base):
        size = request_header(buffer, at)
        if size is None:
            continue
        end = at + 4 + size
        if size > stream.limit:
            believed = is_strong(buffer, at) and stream.starts_packet(at)
        elif end <= len(buffer):
            believed = fits(bytes(buffer[at + 4 : end])) or (
                is_strong(buffer, at) and _leads_on(stream, end)
            )
        elif ended:
            believed = is_strong(buffer, at) and stream.starts_packet(at)
        else:
            stream.scanned = stream.base + at
            return False
        if believed:
            stream.enter(at, judge)
            return True
    stream.scanned = max(stream.scanned, stream.end_of_buffer - HEADER_BYTES + 1)
    return False


def _enter_unknown(stream: Stream, judge: Judge) -> bool:
    """Enter at a request that nobody knows, if it is all that its packets hold."""
    if not stream.fresh or len(stream.buffer) < HEADER_BYTES or stream.scanned > stream.base:
        return False
    size = unknown_request(stream.buffer, 0, stream.limit)
    if size is None or not stream.ends_packet(4 + size):
        return False
    stream.enter(0, judge)
    return True


def _leads_on(stream: Stream, end: int) -> bool:
    """Tell whether a frame's end is the end of a packet or the beginning of another request."""
    if stream.ends_packet(end):
        return True
    return (
        len(stream.buffer) - end >= HEADER_BYTES
        and request_header(stream.buffer, end, stream.limit) is not None
    )


def enter_responses(stream: Stream, judge: Judge, waiting: OpenRequests, ended: bool) -> bool:
    """
    Enter a stream at the first response that answers one of the requests that wait.

    Responses before it, to requests that are not in the capture, are entered too where their sizes
    lead exactly to it.
    """
    for at in _response_candidates(stream, waiting):
        believed = _is_answer(stream, at, waiting, ended)
        if believed is None:
            stream.scanned = stream.base + at
            return False
        if believed:
            stream.enter(_chain_to(stream, at), judge)
            return True
    stream.scanned = max(stream.scanned, stream.end_of_buffer - 7)
    return False


def _response_candidates(stream: Stream, waiting: OpenRequests) -> list[int]:
    """Return the offsets of frames that carry the correlation id of an open request."""
    found: list[int] = []
    start = max(stream.scanned - stream.base, 0)
    for correlation_id in waiting.ids():
        pattern = correlation_id.to_bytes(4, "big", signed=True)
        at = stream.buffer.find(pattern, start + 4)
        while at >= 0:
            if 4 <= int.from_bytes(stream.buffer[at - 4 : at], "big") <= stream.limit:
                found.append(at - 4)
            at = stream.buffer.find(pattern, at + 1)
    return sorted(found)


def _is_answer(stream: Stream, at: int, waiting: OpenRequests, ended: bool) -> bool | None:
    """Tell whether a response begins here; None while that can't be said yet."""
    buffer = stream.buffer
    size = int.from_bytes(buffer[at : at + 4], "big")
    request = waiting.oldest(int.from_bytes(buffer[at + 4 : at + 8], "big", signed=True))
    end = at + 4 + size
    if stream.packet_at(min(end, len(buffer))) <= request.frame.packet:
        return False
    if end > len(buffer):
        return stream.starts_packet(at) if ended else None
    frame = bytes(buffer[at + 4 : end])
    if exact(decode_response(frame, request.api_key, request.api_version)):
        return True
    return stream.starts_packet(at) and stream.ends_packet(end)


def _chain_to(stream: Stream, target: int) -> int:
    """Return the first beginning of a packet from which frame sizes lead exactly to a target."""
    for start in stream.packet_starts():
        if start >= target:
            break
        at = start
        while at < target:
            size = int.from_bytes(stream.buffer[at : at + 4], "big", signed=True)
            if size < 4:
                break
            at += 4 + size
        if at == target:
            return start
    return target


def enter_lonely_responses(stream: Stream, judge: Judge) -> bool:
    """Enter a stream at responses whose requests can't be seen at all: by their ascending ids."""
    buffer = stream.buffer
    for start in stream.packet_starts():
        at, ids = start, list[int]()
        while len(ids) < LONELY_RESPONSES and len(buffer) - at >= 8:
            size = int.from_bytes(buffer[at : at + 4], "big", signed=True)
            ids.append(int.from_bytes(buffer[at + 4 : at + 8], "big", signed=True))
            at += 4 + size
            if size < 4 or at > len(buffer) or ids[-1] < 0 or ids[-1] != ids[0] + len(ids) - 1:
                break
        else:
            if len(ids) == LONELY_RESPONSES:
                stream.enter(start, judge)
                return True
    return False


def forget(stream: Stream, keep: int) -> None:
    """Pass over what was searched in vain, beyond what is kept for a second look."""
    searched = min(stream.scanned - stream.base, len(stream.buffer))
    if searched > keep:
        stream.pass_over(searched - keep)
