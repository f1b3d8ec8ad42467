"""
The kernel that frames and correlates the chunks of a window.

A chunk is processed in steps; see `Step`. Where a table is too short, or something has to be loaded
first, the kernel stops within a step, and goes on there when it is called again.
"""

from __future__ import annotations

from dissector.capture.columns import END, GAP, IN_WINDOW, NEVER
from dissector.engine.correlation.correlator_arrays import ChunkColumns, CorrelatorState
from dissector.engine.correlation.correlator_rows import (
    CARRY_OVER_BASE,
    ConnectionRow,
    Mode,
    Outcome,
)
from dissector.engine.correlation.entries import (
    dequeue,
    free_entry,
    free_list,
    free_ring,
    has_room,
)
from dissector.engine.correlation.frame_rules import add_gap, finish, skip_damaged
from dissector.engine.correlation.framer_kernel import (
    delay,
    frame_piece,
    is_regular,
    may_add_delayed,
    must_wait,
)
from dissector.engine.correlation.pairing_kernel import emit_oldest, match_ready, set_barriers
from dissector.engine.correlation.recognition_kernel import (
    Phase,
    advance,
    keep_foreign,
    recognise_by_responses,
    set_foreign,
)
from dissector.engine.correlation.resync_kernel import RESPONSE_RUN, sync_without_requests
from dissector.engine.correlation.unframed_bytes import (
    drop_fragments,
    forget_preface,
    hold,
    release,
    skip_all,
)
from dissector.engine.tables.exchange_table import UNANSWERED
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I64


class Step:
    """
    How far a chunk is processed.

    At its begin; a gap is found and the bytes before it have to be framed; a piece has to be added;
    what came has to be framed and paired; delayed pieces may follow. At the end of a connection: no
    bytes follow in the first stream, in the second one; is it Kafka by its responses alone;
    responses without requests; the last frames; unfinished ones; their pairing; what remains.
    """

    BEGIN, BREAK, ADD, ADVANCE, DELAYED = range(5)
    FIRST_ENDS, SECOND_ENDS, JUDGE, CONCLUDE, LAST, FINISH, PAIR, EMIT = range(5, 13)


@Kernel
def correlate(chunks: ChunkColumns, state: CorrelatorState, carry_over_start: int) -> int:
    """Process the chunks from `next_chunk` on; return an `Outcome`."""
    counts = state.counts
    while counts.next_chunk < len(chunks.connection):
        i = counts.next_chunk
        number = chunks.connection[i]
        connection = state.connections[number]
        outcome = Outcome.DONE
        if connection.mode in (Mode.UNRECOGNISED, Mode.KAFKA) or counts.step != Step.BEGIN:
            if counts.step == Step.BEGIN:
                begin_chunk(chunks, state, i, carry_over_start)
            outcome = process(state, number)
        elif connection.mode != Mode.DOUBTFUL:
            connection.has_ended = chunks.kind[i] == END
        elif chunks.kind[i] == END and connection.is_judged:
            judge(state, connection)
            outcome = process(state, number)
        if outcome != Outcome.DONE:
            return outcome
        counts.next_chunk = i + 1
        counts.step = Step.BEGIN
        if counts.doubtful_bytes > counts.max_doubtful_bytes:
            return Outcome.DOUBTS_FULL
    return Outcome.DONE


@device_function
def begin_chunk(
    chunks: ChunkColumns, state: CorrelatorState, i: int, carry_over_start: int
) -> None:
    """Set what a chunk changes in its connection, and its first step."""
    connection, piece = state.connections[chunks.connection[i]], state.piece
    state.stream_break.side = -1
    piece.base = -1
    state.counts.phase = Phase.REQUESTS
    if chunks.kind[i] == END:
        set_barriers(state, connection, NEVER, NEVER)
        state.counts.step = Step.DELAYED
        piece.is_end = True
        return
    set_barriers(state, connection, chunks.barrier[i, 0], chunks.barrier[i, 1])
    connection.newest_time_ns = max(connection.newest_time_ns, chunks.time_ns[i])
    connection.has_ended = False
    piece.side = chunks.side[i]
    stream = connection.sides[piece.side]
    if chunks.rtt_ns[i] >= 0:
        stream.rtt_ns = chunks.rtt_ns[i]
    stream.resent_ns = max(stream.resent_ns, chunks.resent_ns[i])
    piece.is_gap = chunks.kind[i] == GAP
    piece.is_end = False
    piece.length = chunks.length[i]
    piece.start = chunks.start[i]
    if chunks.origin[i] != IN_WINDOW:
        piece.start += CARRY_OVER_BASE + carry_over_start
    piece.packet = chunks.packet[i]
    piece.time_ns = chunks.time_ns[i]
    piece.framed_bytes = 0
    piece.delayed = -1
    state.counts.step = Step.BEGIN if piece.length > 0 else Step.ADVANCE


@device_function
def process(state: CorrelatorState, number: int) -> int:
    """Take the steps of a chunk; return an `Outcome`."""
    counts, connection = state.counts, state.connections[number]
    outcome = Outcome.DONE
    if counts.step == Step.BEGIN:
        if must_wait(connection, state.piece.side, state.piece.packet):
            if not has_room(state, connection, 2):
                return Outcome.TABLE_FULL
            delay(state, connection)
            counts.step = Step.ADVANCE
        else:
            counts.step = Step.BREAK if state.piece.is_gap else Step.ADD
    while counts.step <= Step.DELAYED:
        if counts.step == Step.BREAK:
            outcome = advance_to_gap(state, number)
        elif counts.step == Step.ADD:
            outcome = add_piece(state, number)
        elif counts.step == Step.ADVANCE:
            outcome = advance(state, number)
        elif may_add_delayed(state, connection):
            take_delayed(state, connection)
            continue
        elif state.piece.is_end:
            return end(state, number)
        else:
            return Outcome.DONE
        if outcome != Outcome.DONE:
            return outcome
        counts.step += 1
    return end(state, number)


@device_function
def take_delayed(state: CorrelatorState, connection: ConnectionRow) -> None:
    """Make the first delayed piece the present one; its entry keeps its bytes until it is added."""
    piece, entry = state.piece, state.entries[connection.first_delayed]
    piece.side = 1 - connection.client
    piece.is_gap = entry.length == 0
    piece.start = entry.start
    piece.length = entry.size
    piece.packet = entry.packet
    piece.time_ns = entry.time_ns
    piece.framed_bytes = 0
    piece.delayed = connection.first_delayed
    connection.first_delayed = entry.next
    if entry.next < 0:
        connection.last_delayed = -1
    entry.is_waiting = False
    state.counts.step = Step.BREAK if piece.is_gap else Step.ADD


@device_function
def advance_to_gap(state: CorrelatorState, number: int) -> int:
    """Frame and pair what came before a gap; return an `Outcome`."""
    piece, gap = state.piece, state.stream_break
    gap.side = piece.side
    gap.may_be_partial = state.connections[number].sides[piece.side].last_packet == piece.packet
    gap.missing = piece.length
    return advance(state, number)


@device_function
def add_piece(state: CorrelatorState, number: int) -> int:
    """Add the piece to its stream: frame it, or hold it; return an `Outcome`."""
    piece, connection = state.piece, state.connections[number]
    stream = connection.sides[piece.side]
    state.stream_break.side = -1
    if connection.mode not in (Mode.UNRECOGNISED, Mode.KAFKA):
        return Outcome.DONE
    outcome = Outcome.DONE
    if piece.is_gap:
        outcome = add_gap(state, number)
    else:
        if not has_room(state, connection, piece.length // 8 + 2):
            return Outcome.TABLE_FULL
        if piece.framed_bytes == 0:
            piece.framed_bytes = skip_damaged(
                state, connection, piece.side, piece.length, piece.packet
            )
        if piece.framed_bytes < piece.length:
            outcome = add_bytes(state, number)
    if outcome != Outcome.DONE:
        return outcome
    stream.last_packet = piece.packet
    stream.last_time_ns = piece.time_ns
    if piece.delayed >= 0:
        free_entry(state, piece.delayed)
        piece.delayed = -1
    return Outcome.DONE


@device_function
def add_bytes(state: CorrelatorState, number: int) -> int:
    """Frame the bytes of the piece, and hold the rest of them; return an `Outcome`."""
    piece, connection = state.piece, state.connections[number]
    data, start, base = state.data, piece.start, 0
    if start >= CARRY_OVER_BASE:
        data = state.carry_over
        start -= CARRY_OVER_BASE
        base = CARRY_OVER_BASE
    if connection.mode == Mode.UNRECOGNISED:
        if keep_foreign(state, connection, data, start, base):
            return Outcome.DONE
    elif is_regular(connection, piece.side):
        if piece.base < 0:
            piece.base = connection.sides[piece.side].base
        outcome = frame_piece(state, number, data, start, base)
        if outcome != Outcome.DONE or piece.framed_bytes == piece.length:
            return outcome
    stream, done = connection.sides[piece.side], piece.framed_bytes
    rest = piece.length - done
    if not hold(state, stream, piece.start + done, rest, piece.packet, piece.time_ns):
        return Outcome.TABLE_FULL
    piece.framed_bytes = piece.length
    return Outcome.DONE


@device_function
def end(state: CorrelatorState, number: int) -> int:
    """Take the steps at the end of a connection, or of the capture; return an `Outcome`."""
    counts, connection = state.counts, state.connections[number]
    outcome = Outcome.DONE
    if counts.step == Step.DELAYED:
        connection.newest_time_ns = NEVER
        counts.step = Step.FIRST_ENDS
    while counts.step < Step.EMIT:
        if counts.step <= Step.SECOND_ENDS:
            outcome = end_stream(state, number, counts.step - Step.FIRST_ENDS)
        elif counts.step == Step.JUDGE:
            state.stream_break.side = -1
            if counts.doubtful_count == len(state.doubtful):
                return Outcome.TABLE_FULL
            if connection.mode == Mode.UNRECOGNISED:
                outcome = recognise_by_responses(state, number)
                if connection.mode == Mode.DOUBTFUL:
                    list_doubtful(state, number)
                    return Outcome.DONE
        elif connection.mode == Mode.KAFKA:
            outcome = conclude(state, number)
        if outcome != Outcome.DONE:
            return outcome
        counts.step += 1
    if not has_room(state, connection, 0):
        return Outcome.TABLE_FULL
    connection.newest_time_ns = 0
    while connection.open_count > 0:
        emit_oldest(state, number, UNANSWERED)
    free_ring(state, connection)
    connection.has_ended = True
    return Outcome.DONE


@device_function
def end_stream(state: CorrelatorState, number: int, side: int) -> int:
    """Frame and pair what is there, as no bytes follow in a stream; return an `Outcome`."""
    connection, gap = state.connections[number], state.stream_break
    gap.side = side
    gap.may_be_partial = connection.start_captured and connection.sides[side].base == 0
    gap.missing = 0
    return advance(state, number)


@device_function
def conclude(state: CorrelatorState, number: int) -> int:
    """Take a step for frames that are unfinished or still wait; return an `Outcome`."""
    connection, step = state.connections[number], state.counts.step
    outcome = Outcome.DONE
    if step == Step.CONCLUDE:
        responses = connection.sides[1 - connection.client]
        if not responses.in_sync:
            sync_without_requests(state, responses, RESPONSE_RUN)
    elif step == Step.LAST:
        outcome = advance(state, number)
    elif step == Step.FINISH:
        for side in range(2):
            if outcome == Outcome.DONE:
                outcome = finish(state, number, side)
        for side in range(2):
            if outcome == Outcome.DONE and not connection.sides[side].in_sync:
                skip_all(state, connection.sides[side])
    else:
        outcome = match_ready(state, number)
    return outcome


@device_function
def list_doubtful(state: CorrelatorState, number: int) -> None:
    """Append a connection to those that have ended in doubt."""
    counts, connection = state.counts, state.connections[number]
    state.doubtful[counts.doubtful_count] = number
    counts.doubtful_count += 1
    first, second = connection.sides[0], connection.sides[1]
    counts.doubtful_bytes += first.buffered_bytes + second.buffered_bytes


@device_function
def judge(state: CorrelatorState, connection: ConnectionRow) -> None:
    """Continue the end of a doubtful connection, which is Kafka only with a broker."""
    side = connection.doubtful_side
    connection.mode = Mode.UNRECOGNISED
    connection.is_judged = False
    connection.doubtful_side = -1
    state.stream_break.side = -1
    if connection.is_broker and sync_without_requests(state, connection.sides[side], 1):
        connection.mode = Mode.KAFKA
        connection.client = 1 - side
    else:
        set_foreign(state, connection, Mode.OTHER)
    state.counts.step = Step.CONCLUDE


@Kernel
def forget(numbers: I64, state: CorrelatorState) -> None:
    """Drop the state of connections; their rows are unused then."""
    for i in range(len(numbers)):
        connection = state.connections[numbers[i]]
        while connection.oldest_request >= 0:
            dequeue(state, numbers[i], connection.oldest_request)
        free_ring(state, connection)
        free_list(state, connection.first_delayed)
        set_barriers(state, connection, NEVER, NEVER)
        for side in range(2):
            stream = connection.sides[side]
            if stream.held >= 0:
                release(state, stream)
            drop_fragments(state, stream)
            free_list(state, stream.first_ready)
            free_list(state, stream.damaged)
            forget_preface(state, stream)
