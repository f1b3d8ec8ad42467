"""
Resynchronises a stream that is out of sync: finds the next plausible frame.

Used at the beginning of a connection, in the middle of one where the capture began, and after a
gap. A candidate is accepted if its declaration consumes it to the last byte, or if its header is
readable and its size leads exactly to the end of a packet or to the next plausible header; without
a client id both are required, or the beginning of a packet. An incomplete candidate is awaited if
it is plausible enough; one without a captured end is accepted if all its available bytes fit.

Searched bytes are not searched again. A search that lacks a program is interrupted, and continues
with the same candidate (`SideRow.resumed`), so that no byte is tried twice.
"""

from __future__ import annotations

from dissector.capture.columns import NEVER
from dissector.capture.integers import signed32
from dissector.engine.correlation.correlator_arrays import CorrelatorState
from dissector.engine.correlation.correlator_rows import Outcome, SideRow, Verdict
from dissector.engine.correlation.entries import find_request, has_room
from dissector.engine.correlation.frame_checks import (
    HEADER_BYTES,
    MAX_SIZE,
    check_header,
    has_client_id,
    is_unknown_request,
    next_header,
)
from dissector.engine.correlation.frame_rules import is_unknown
from dissector.engine.correlation.known_apis import (
    check_begun_request,
    check_whole_request,
    check_whole_response,
)
from dissector.engine.correlation.pairing_kernel import prove_unfinished
from dissector.engine.correlation.unframed_bytes import (
    end_index,
    ends_packet,
    origin_of,
    packet_before,
    starts_packet,
    sync_at,
)
from dissector.kernel import device_function
from dissector.protocol.frame_limits import MAX_FRAME_BYTES

RESPONSE_RUN = 3
"""Responses with ascending correlation ids that identify a broker without a captured client."""

MAX_AWAITED_BYTES = 1 << 20
"""The maximum size of an awaited response inside a packet."""

MAX_LED_BYTES = 1 << 21
"""Bytes before a response in which earlier ones are looked for."""


@device_function
def search_request(state: CorrelatorState, stream: SideRow, is_broken: bool) -> int:
    """
    Synchronise a stream at its first plausible request, if there is one; return an `Outcome`.

    Args:
        state: Of the correlator.
        stream: Out of sync, with held bytes or without any.
        is_broken: Whether no bytes follow: incomplete candidates are accepted now or never.
    """
    if stream.held < 0:
        return Outcome.DONE
    origin, size = origin_of(state, stream), stream.buffered_bytes
    if begins_unknown_request(state, stream):
        sync_at(state, stream, 0)
        return Outcome.DONE
    at, end = max(stream.scanned, stream.resumed) - stream.base, size - HEADER_BYTES + 1
    while at < end:
        at = next_header(state.carry_over, origin + at, origin + end) - origin
        if at < 0:
            break
        outcome = check_request_at(state, stream, at, is_broken)
        if is_unknown(outcome):
            stream.resumed = stream.base + at
            return outcome
        if outcome == Verdict.YES:
            sync_at(state, stream, at)
            return Outcome.DONE
        if outcome == Verdict.OPEN:
            stream.scanned = stream.base + at
            stream.resumed = 0
            return Outcome.DONE
        at += 1
    stream.resumed = 0
    stream.scanned = max(stream.scanned, stream.base + end)
    return Outcome.DONE


@device_function
def begins_unknown_request(state: CorrelatorState, stream: SideRow) -> bool:
    """Return whether a stream begins with a request of any API that fills its packets exactly."""
    size = stream.buffered_bytes
    if not stream.at_packet_start or size < HEADER_BYTES or stream.scanned > stream.base:
        return False
    data, at, limit = state.carry_over, origin_of(state, stream), state.counts.max_frame_bytes
    if not is_unknown_request(data, at, at + size, limit):
        return False
    return ends_packet(state, stream, 4 + signed32(data, at))


@device_function
def check_request_at(state: CorrelatorState, stream: SideRow, at: int, is_broken: bool) -> int:
    """Return whether a request begins at an offset of held bytes; or what is to be loaded."""
    data, here = state.carry_over, origin_of(state, stream) + at
    available = stream.buffered_bytes - at
    outcome = check_header(state, data, here, here + available, MAX_SIZE)
    if outcome != Verdict.YES:
        return outcome
    size = signed32(data, here)
    is_large = size > state.counts.max_frame_bytes
    if is_large and size > MAX_FRAME_BYTES:
        return Verdict.NO  # larger than any broker accepts: text taken for a size
    if 4 + size <= available and not is_large:
        return check_complete(state, stream, at, size)
    if not is_large and not is_broken:
        return check_open(state, stream, at, size)
    if not is_large and not state.stream_break.may_be_partial:
        return Verdict.NO
    if not has_client_id(data, here) or not starts_packet(state, stream, at):
        return Verdict.NO
    return check_begun_request(state, stream, here + 4, size, min(available - 4, size))


@device_function
def check_complete(state: CorrelatorState, stream: SideRow, at: int, size: int) -> int:
    """Return whether a complete candidate is a request; or what is to be loaded."""
    here = origin_of(state, stream) + at
    is_named = has_client_id(state.carry_over, here)
    ending = check_end(state, stream, at + 4 + size)
    if is_unknown(ending):
        return ending
    ends_plausibly = ending == Verdict.YES
    if is_named and ends_plausibly:
        return Verdict.YES
    # A small body of numbers decodes by chance: without a client id its place must fit too.
    if is_named or ends_plausibly or starts_packet(state, stream, at):
        return check_whole_request(state, stream, here + 4, size)
    return Verdict.NO


@device_function
def check_end(state: CorrelatorState, stream: SideRow, end: int) -> int:
    """Return whether a frame ends with a packet, or before another request."""
    if ends_packet(state, stream, end):
        return Verdict.YES
    if stream.buffered_bytes - end < HEADER_BYTES:
        return Verdict.NO
    origin = origin_of(state, stream)
    stop = origin + stream.buffered_bytes
    return check_header(state, state.carry_over, origin + end, stop, state.counts.max_frame_bytes)


@device_function
def check_open(state: CorrelatorState, stream: SideRow, at: int, size: int) -> int:
    """Return OPEN to wait for a candidate's end, until twice as many bytes have come; or NO."""
    here = origin_of(state, stream) + at
    if not has_client_id(state.carry_over, here) and not starts_packet(state, stream, at):
        return Verdict.NO
    available = stream.buffered_bytes - at
    if stream.scanned == stream.base + at and available < 2 * stream.checked_bytes:
        return Verdict.OPEN
    outcome = check_begun_request(state, stream, here + 4, size, available - 4)
    if is_unknown(outcome):
        return outcome
    stream.checked_bytes = available
    return Verdict.OPEN if outcome == Verdict.YES else Verdict.NO


@device_function
def search_proof(state: CorrelatorState, number: int, side: int) -> int:
    """Look for a response to the unfinished request where the search is; return an `Outcome`."""
    connection = state.connections[number]
    stream = connection.sides[side]
    at = stream.scanned - stream.base
    if stream.buffered_bytes - at < 8 or not starts_packet(state, stream, at):
        return Outcome.DONE
    here, first = origin_of(state, stream) + at, packet_before(state, stream, at + 8)
    size, packet = signed32(state.carry_over, here), first.packet
    is_whole = size >= 4 and ends_packet(state, stream, at + 4 + size)
    if not is_whole or packet >= connection.sides[1 - side].barrier:
        return Outcome.DONE
    if not has_room(state, connection, 2):
        return Outcome.TABLE_FULL
    correlation_id = signed32(state.carry_over, here + 4)
    return prove_unfinished(state, number, correlation_id, packet, first.time_ns)


@device_function
def search_response(state: CorrelatorState, number: int, side: int) -> int:
    """
    Synchronise a stream at the first response to a request in flight, if there is one.

    Responses before it, to requests that were not captured, are included where their sizes lead
    exactly to it.
    """
    connection = state.connections[number]
    stream = connection.sides[side]
    size, barrier = stream.buffered_bytes, connection.sides[1 - side].barrier
    data, origin, limit = state.carry_over, origin_of(state, stream), state.counts.max_frame_bytes
    at = max(stream.scanned, stream.resumed) - stream.base
    stop = size
    if barrier != NEVER:
        # Packets from there on may answer later requests.
        stop = offset_before(state, stream, barrier, stream.scanned - stream.base)
    stop = min(stop, size - 7)
    lowest, highest = connection.lowest_open_id, connection.highest_open_id
    while at < stop:
        correlation_id = signed32(data, origin + at + 4)
        if lowest <= correlation_id <= highest and 4 <= signed32(data, origin + at) <= limit:
            request = find_request(state, number, correlation_id)
            if request >= 0:
                outcome = check_response_at(state, stream, side, at, request)
                if is_unknown(outcome):
                    stream.resumed = stream.base + at
                    return outcome
                if outcome == Verdict.YES:
                    sync_at(state, stream, first_leading_to(state, stream, at))
                    return Outcome.DONE
                if outcome == Verdict.OPEN:
                    stream.scanned = stream.base + at
                    stream.resumed = 0
                    return Outcome.DONE
        at += 1
    stream.resumed = 0
    stream.scanned = max(stream.scanned, stream.base + stop)
    return Outcome.DONE


@device_function
def offset_before(state: CorrelatorState, stream: SideRow, packet: int, at: int) -> int:
    """Return the offset of held bytes, from `at` on, of the first byte of a later packet."""
    first = end_index(state, stream, stream.base + at + 1)
    for k in range(first, stream.first_end + stream.end_count):
        if state.ends[k].packet >= packet:
            return max(at, state.ends[k - 1].end - stream.base) if k > stream.first_end else at
    return stream.buffered_bytes


@device_function
def check_response_at(
    state: CorrelatorState, stream: SideRow, side: int, at: int, request: int
) -> int:
    """Return whether the response to a request begins here; or what is to be loaded."""
    available, gap = stream.buffered_bytes, state.stream_break
    here = origin_of(state, stream) + at
    size = signed32(state.carry_over, here)
    end, asked = at + 4 + size, state.entries[request]
    if packet_before(state, stream, min(end, available)).packet <= asked.packet:
        return Verdict.NO
    is_at_start = starts_packet(state, stream, at)
    if end > available:
        if gap.side != side:
            return Verdict.OPEN if is_at_start or size <= MAX_AWAITED_BYTES else Verdict.NO
        is_cut = gap.may_be_partial and gap.missing == end - available
        return Verdict.YES if is_at_start and is_cut else Verdict.NO
    if is_at_start and ends_packet(state, stream, end):
        return Verdict.YES
    return check_whole_response(state, stream, here + 4, size, asked)


@device_function
def packet_start(state: CorrelatorState, stream: SideRow, k: int) -> int:
    """Return the offset of the k-th packet of held bytes, -1 for one that began before them."""
    if k == 0:
        return 0 if stream.at_packet_start else -1
    return state.ends[stream.first_end + k - 1].end - stream.base


@device_function
def first_leading_to(state: CorrelatorState, stream: SideRow, target: int) -> int:
    """Return the first packet start with frame sizes that lead exactly to a target."""
    data, origin, seen = state.carry_over, origin_of(state, stream), state.seen
    least, found = max(0, target - len(seen)), target
    for k in range(stream.end_count):
        start = packet_start(state, stream, k)
        if start >= target or found < target:
            break
        at = start
        while least <= at < target and seen[at - least] == 0:
            seen[at - least] = 1
            size = signed32(data, origin + at)
            at = at + 4 + size if size >= 4 else -1
        if at == target:
            found = start
    for k in range(target - least):
        seen[k] = 0
    return found


@device_function
def sync_without_requests(state: CorrelatorState, stream: SideRow, least: int) -> bool:
    """
    Synchronise a stream at responses without requests, by their ascending ids.

    Args:
        state: Of the correlator.
        stream: Out of sync.
        least: Least number of responses; fewer than usual must end with a packet.
    """
    start = find_response_run(state, stream, least)
    if start >= 0:
        sync_at(state, stream, start)
    return start >= 0


@device_function
def find_response_run(state: CorrelatorState, stream: SideRow, least: int) -> int:
    """Return the offset of a run of responses with ascending ids; -1 without one."""
    if stream.held < 0:
        return -1
    for k in range(stream.end_count):
        start = packet_start(state, stream, k)
        if start >= 0:
            end = end_of_run(state, stream, start, least)
            if end >= 0 and (least == RESPONSE_RUN or ends_packet(state, stream, end)):
                return start
    return -1


@device_function
def end_of_run(state: CorrelatorState, stream: SideRow, at: int, least: int) -> int:
    """Return the end of responses with ascending ids that begin here; -1 if there are too few."""
    data, origin, available = state.carry_over, origin_of(state, stream), stream.buffered_bytes
    first = -1
    for k in range(least):
        if available - at < 8:
            return -1
        size, correlation_id = signed32(data, origin + at), signed32(data, origin + at + 4)
        at += 4 + size
        first = correlation_id if k == 0 else first
        if size < 4 or at > available or correlation_id < 0 or correlation_id != first + k:
            return -1
    return at
