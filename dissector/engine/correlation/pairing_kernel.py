"""
Device functions that pair the frames of a connection, in the order of the capture.

Rule 1: the two streams are read in the order of the capture. A stream that waits behind a gap
delays the later frames of the other one (`Chunks.barrier`), so that a response never meets its
request too early or too late.

Rule 2: a request is matched with the response of its correlation id; of several in flight with the
same id, the oldest. Raw SASL tokens have no id and are matched in order.

Rule 3: a response that was captured before its request, as in a merge of two taps, waits for it:
for `MAX_EARLY_RESPONSE_NS`, and only with an id above all requests so far, because all known
clients count upwards.

Rule 4: the first response of a connection has the id of a request. Other bytes that servers send
before Kafka, as SOCKS proxies do, would be read as the size of a frame, and hide all responses.

Rule 5: a response proves that its request arrived, even if the end of that was not captured. It is
dated by its last captured packet, never by the next request, which reveals the gap.

Rule 6: no id is invented. A stream is synchronised only at frames that pass the checks of
`resync_kernel`; all other bytes are counted as skipped.

Source: https://kafka.apache.org/protocol#protocol_network (order); KIP-43, KIP-152 (SASL tokens).
"""

from __future__ import annotations

from dissector.capture.columns import NEVER
from dissector.engine.correlation.correlator_arrays import CorrelatorState, FrameColumns
from dissector.engine.correlation.correlator_rows import (
    CARRY_OVER_BASE,
    ConnectionRow,
    Entry,
    Outcome,
    Verdict,
)
from dissector.engine.correlation.entries import (
    dequeue,
    enqueue,
    find_request,
    free_entry,
    has_id,
    has_room,
    is_suppressed,
    suppress,
)
from dissector.engine.correlation.frame_rules import (
    begin_damaged,
    is_handshake,
    take_damaged,
    unfinished_id,
)
from dissector.engine.correlation.known_apis import check_answer, lacks_response_program
from dissector.engine.tables.exchange_table import (
    ANSWERED,
    BROKEN_REQUEST,
    BROKEN_RESPONSE,
    NO_RESPONSE,
    NONE,
    ORPHAN,
    UNANSWERED,
)
from dissector.kernel import device_function

MAX_EARLY_RESPONSE_NS = 100_000_000
"""
How long before its request a response may be captured: as long as a hole among the requests may
wait to become a gap: twice `stream_kernel.WAIT_NS`.
"""

MAX_DELAYED_NS = 200_000_000
"""
The longest delay of an acknowledgement: after it, bytes that are sent again were lost.

Source: TCP_DELACK_MAX in Linux, include/net/tcp.h.
"""


@device_function
def set_barriers(
    state: CorrelatorState, connection: ConnectionRow, first: int, second: int
) -> None:
    """Set the read limit of each side."""
    for side in range(2):
        stream = connection.sides[side]
        barrier = second if side else first
        before = stream.barrier
        if before != barrier:
            state.counts.barrier_count += (before == NEVER) - (barrier == NEVER)
            stream.barrier = barrier


@device_function
def may_pass(connection: ConnectionRow, side: int, packet: int) -> bool:
    """Return whether a frame that a packet completed need not wait for the other side."""
    return connection.ready_count == 0 and packet < connection.sides[1 - side].barrier


@device_function
def is_early(connection: ConnectionRow, response: Entry) -> bool:
    """Return whether a response may have been captured before its request."""
    return (
        connection.highest_id < response.correlation_id
        and response.length >= 4
        and connection.newest_time_ns - response.time_ns < MAX_EARLY_RESPONSE_NS
        and connection.token_count == 0
    )


@device_function
def take_ready(state: CorrelatorState, connection: ConnectionRow, side: int) -> int:
    """Remove the first ready frame of a side; return it."""
    stream = connection.sides[side]
    entry = stream.first_ready
    stream.first_ready = state.entries[entry].next
    if stream.first_ready < 0:
        stream.last_ready = -1
    connection.ready_count -= 1
    state.entries[entry].next = -1
    return entry


@device_function
def match_ready(state: CorrelatorState, number: int) -> int:
    """Process ready frames in the order of the capture, up to the barriers."""
    connection = state.connections[number]
    client = connection.client
    while connection.ready_count > 0:
        side = next_side(state, connection)
        head = connection.sides[side].first_ready
        if side != client and is_early(connection, state.entries[head]):
            side = client
            head = connection.sides[side].first_ready
            if head < 0:
                return Outcome.DONE
        if state.entries[head].packet >= connection.sides[1 - side].barrier:
            return Outcome.DONE
        if not has_room(state, connection, 2):
            return Outcome.TABLE_FULL
        if side == client:
            add_request(state, number, take_ready(state, connection, side))
            continue
        outcome = prepare_response(state, number, head)
        if outcome != Outcome.DONE:
            return outcome
        pair_response(state, number, take_ready(state, connection, side))
    return Outcome.DONE


@device_function
def next_side(state: CorrelatorState, connection: ConnectionRow) -> int:
    """Return the side with the earlier first ready frame."""
    first, second = connection.sides[0].first_ready, connection.sides[1].first_ready
    if second < 0:
        return 0
    if first >= 0 and state.entries[first].packet < state.entries[second].packet:
        return 0
    return 1


@device_function
def add_request(state: CorrelatorState, number: int, request: int) -> None:
    """Keep a request until its response; emit it immediately if none is due (acks = 0)."""
    connection, entry, limits = state.connections[number], state.entries[request], state.counts
    if has_id(state, request):
        is_first = connection.highest_id == NEVER
        if is_first or connection.highest_id < entry.correlation_id:
            connection.highest_id = entry.correlation_id
    if not entry.is_due and not entry.is_token:
        emit(state, number, NO_RESPONSE, request, -1)
        suppress(state, connection, entry.correlation_id)
        free_entry(state, request)
        return
    enqueue(state, number, request)
    while connection.open_count > limits.max_open or (
        connection.open_bytes > limits.max_open_bytes and connection.open_count > 1
    ):
        emit_oldest(state, number, UNANSWERED)


@device_function
def prepare_response(state: CorrelatorState, number: int, response: int) -> int:
    """Load what the pairing of a response needs, and prove its request; return an `Outcome`."""
    connection, entry = state.connections[number], state.entries[response]
    if entry.length < 4:
        return Outcome.DONE
    same = find_request(state, number, entry.correlation_id)
    if same < 0:
        outcome = prove_unfinished(state, number, entry.correlation_id, entry.packet, entry.time_ns)
        same = find_request(state, number, entry.correlation_id)
        if outcome != Outcome.DONE or same < 0:
            return outcome
    is_judged = connection.token_count > 0 or (connection.in_login and state.entries[same].in_login)
    if is_judged and lacks_response_program(state, state.entries[same]):
        return Outcome.NEEDS_PROGRAM
    return Outcome.DONE


@device_function
def prove_unfinished(
    state: CorrelatorState, number: int, correlation_id: int, packet: int, time_ns: int
) -> int:
    """Take the unfinished request for arrived, if it has the id of a response of a packet."""
    client = state.connections[number].client
    stream = state.connections[number].sides[client]
    if unfinished_id(state, stream) != correlation_id:
        return Outcome.DONE
    if find_request(state, number, correlation_id) >= 0:
        return Outcome.DONE
    outcome = begin_damaged(state, number, client)
    if outcome != Outcome.DONE:
        return outcome
    proved = take_damaged(state, stream)
    if proved >= 0:
        entry = state.entries[proved]
        if entry.packet > packet:
            entry.packet = packet
            entry.time_ns = time_ns
        add_request(state, number, proved)
    return Outcome.DONE


@device_function
def request_of(state: CorrelatorState, number: int, response: int) -> int:
    """
    Return the request of a response; -1 without one.

    A raw token has no id: its response follows those of all earlier requests. The last token of
    a login may have none, so a response that fits the request with its id is not a token's.
    Source: SaslServerAuthenticator.handleSaslToken of Apache Kafka (`response != null`).
    """
    connection, entry = state.connections[number], state.entries[response]
    same = find_request(state, number, entry.correlation_id) if entry.length >= 4 else -1
    if connection.token_count == 0:
        return same
    oldest, fits = connection.oldest_request, same >= 0
    if not state.entries[oldest].is_token:
        return same if fits else connection.first_token
    if fits:
        fits = check_answer(state, entry, state.entries[same]) != Verdict.NO
    return same if fits else oldest


@device_function
def pair_response(state: CorrelatorState, number: int, response: int) -> None:
    """Emit a response, with its request or as an orphan, and free its entry."""
    connection, entry = state.connections[number], state.entries[response]
    request = request_of(state, number, response)
    if request < 0:
        emit(state, number, ORPHAN, -1, response)
        if entry.length >= 4:
            unasked = is_suppressed(state, connection, entry.correlation_id)
            state.exchanges.answers_acks_0[state.counts.exchange_count - 1] = unasked
    else:
        asked = state.entries[request]
        emit_lost(state, number, request)
        if asked.packet > entry.packet and asked.length < asked.size:
            asked.packet = entry.packet  # its end was lost; the response proves its arrival
            asked.time_ns = entry.time_ns
        if asked.in_login and connection.in_login and not is_handshake(asked):
            # The response to another handshake proves nothing.
            connection.in_login = check_answer(state, entry, asked) != Verdict.YES
        emit(state, number, ANSWERED, request, response)
        state.exchanges.server_ns[state.counts.exchange_count - 1] = time_of_server(
            connection, asked, entry
        )
        dequeue(state, number, request)
    free_entry(state, response)


@device_function
def time_of_server(connection: ConnectionRow, request: Entry, response: Entry) -> int:
    """
    Return how long the broker had a request, in ns; NONE where the capture does not show it.

    That is from the request, or the last time that bytes were sent again before the response, to
    the first byte of the response, less the RTT between the capture and the broker. Bytes that were
    sent again soon need not have been lost: their acknowledgement may have been delayed.
    """
    broker, begin_ns = connection.sides[1 - connection.client], request.time_ns
    latency_ns = response.time_ns - begin_ns
    if broker.rtt_ns < 0 or latency_ns < 0 or request.packet >= response.packet:
        return NONE
    if begin_ns < broker.resent_ns <= response.begun_ns:
        if broker.resent_ns - begin_ns < MAX_DELAYED_NS:
            return NONE
        begin_ns = broker.resent_ns
    return min(max(response.begun_ns - begin_ns - broker.rtt_ns, 0), latency_ns)


@device_function
def emit(state: CorrelatorState, number: int, status: int, request: int, response: int) -> None:
    """Write an exchange, with the frames that have entries."""
    connection, exchanges = state.connections[number], state.exchanges
    row = state.counts.exchange_count
    state.counts.exchange_count = row + 1
    exchanges.connection[row] = number
    exchanges.status[row] = status
    exchanges.client[row] = connection.client
    exchanges.token[row] = False
    exchanges.answers_acks_0[row] = False
    exchanges.broken_off[row] = 0
    exchanges.api_key[row] = NONE
    exchanges.api_version[row] = NONE
    exchanges.correlation_id[row] = NONE
    exchanges.server_ns[row] = NONE
    if request >= 0:
        entry = state.entries[request]
        is_token = entry.is_token or (entry.in_login and connection.in_login)
        exchanges.token[row] = is_token
        if entry.is_broken_off:
            exchanges.broken_off[row] = BROKEN_REQUEST
        if not is_token and entry.length >= 8:
            exchanges.api_key[row] = entry.api_key
            exchanges.api_version[row] = entry.api_version
            exchanges.correlation_id[row] = entry.correlation_id
        write_frame(exchanges.request, row, entry, state.counts.window_bytes)
    else:
        write_no_frame(exchanges.request, row)
    if response >= 0:
        entry = state.entries[response]
        if entry.is_broken_off:
            exchanges.broken_off[row] |= BROKEN_RESPONSE
        if request < 0 and entry.length >= 4:
            exchanges.correlation_id[row] = entry.correlation_id
        write_frame(exchanges.response, row, entry, state.counts.window_bytes)
    else:
        write_no_frame(exchanges.response, row)
    if not connection.has_emitted:
        connection.has_emitted = True
        state.emitters[state.counts.emitter_count] = number
        state.counts.emitter_count += 1


@device_function
def write_frame(frames: FrameColumns, row: int, entry: Entry, window_bytes: int) -> None:
    """Write the columns of a frame."""
    is_carried = entry.start >= CARRY_OVER_BASE
    frames.start[row] = entry.start - CARRY_OVER_BASE + window_bytes if is_carried else entry.start
    frames.captured_bytes[row] = entry.length
    frames.size[row] = entry.size
    frames.packet[row] = entry.packet
    frames.time_ns[row] = entry.time_ns
    frames.offset[row] = entry.offset


@device_function
def write_no_frame(frames: FrameColumns, row: int) -> None:
    """Write the columns of a missing frame."""
    frames.start[row] = NONE
    frames.captured_bytes[row] = NONE
    frames.size[row] = NONE
    frames.packet[row] = NONE
    frames.time_ns[row] = NONE
    frames.offset[row] = NONE


@device_function
def emit_oldest(state: CorrelatorState, number: int, status: int) -> None:
    """Emit the oldest request in flight without a response."""
    request = state.connections[number].oldest_request
    emit(state, number, status, request, -1)
    dequeue(state, number, request)


@device_function
def emit_lost(state: CorrelatorState, number: int, answered: int) -> None:
    """
    Emit the requests before an answered one that precede a gap, and tokens.

    Responses have the order of their requests, so theirs were in the gap.
    Source: https://kafka.apache.org/protocol#protocol_network
    """
    connection = state.connections[number]
    while connection.oldest_request != answered:
        oldest = state.entries[connection.oldest_request]
        is_lost = oldest.packet < connection.lost_before
        if not is_lost and not oldest.is_token:
            return
        # The last token of a login may have no response.
        emit_oldest(state, number, UNANSWERED if is_lost else NO_RESPONSE)
