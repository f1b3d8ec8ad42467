"""
Device functions that frame and pair all that is there, in rounds.

Once the stream of the client is in sync at a request the other one may be searched for its
response; and where sync is lost after some frames, more may follow.
"""

from __future__ import annotations

from dissector.capture.columns import NEVER
from dissector.engine.correlation.correlator_arrays import CorrelatorState
from dissector.engine.correlation.correlator_rows import Mode, Outcome, SideRow
from dissector.engine.correlation.framer_kernel import frame_held
from dissector.engine.correlation.pairing_kernel import match_ready
from dissector.engine.correlation.recognition_kernel import discard_scanned, recognise
from dissector.engine.correlation.resync_kernel import search_proof, search_request, search_response
from dissector.kernel import device_function


class Phase:
    """
    A part of a round of `advance`, which ends if another round would find nothing new.

    The search for requests; framing and pairing; the search for responses. An interrupted round
    goes on with its phase: what it comes to does not depend on where it was interrupted.
    """

    REQUESTS, FRAMES, RESPONSES = range(3)


@device_function
def advance(state: CorrelatorState, number: int) -> int:
    """Frame and match all available bytes, up to `stream_break`; return an `Outcome`."""
    connection, outcome = state.connections[number], Outcome.DONE
    if connection.mode == Mode.UNRECOGNISED:
        outcome = recognise(state, number)
    if outcome != Outcome.DONE or connection.mode != Mode.KAFKA:
        return outcome
    counts, client = state.counts, connection.client
    requests, responses = connection.sides[client], connection.sides[1 - client]
    if counts.phase == Phase.REQUESTS:
        counts.has_progressed = True
    while counts.has_progressed or counts.phase != Phase.REQUESTS:
        if counts.phase == Phase.REQUESTS:
            outcome = begin_round(state, requests, client)
        elif counts.phase == Phase.FRAMES:
            outcome = frame_both(state, number, client)
            # If sync was lost after some frames, more frames may follow immediately.
            is_lost = not requests.in_sync and requests.base > counts.framed_from
            counts.has_progressed = is_lost
        elif not responses.in_sync and responses.held >= 0:
            outcome = search_proof(state, number, 1 - client)
            if outcome == Outcome.DONE and connection.open_count > 0:
                outcome = search_response(state, number, 1 - client)
            if responses.in_sync:
                counts.has_progressed = True
        if outcome != Outcome.DONE:
            return outcome
        counts.phase = (counts.phase + 1) % 3
    outcome = Outcome.DONE
    if not requests.in_sync:
        outcome = discard_scanned(state, connection, client, True)
    if not responses.in_sync:
        is_searched = connection.open_count > 0
        outcome = discard_scanned(state, connection, 1 - client, is_searched)
    return outcome


@device_function
def begin_round(state: CorrelatorState, requests: SideRow, client: int) -> int:
    """Search requests, if the stream of the client is out of sync; return an `Outcome`."""
    counts, piece = state.counts, state.piece
    if not requests.in_sync:
        counts.framed_from = NEVER
        outcome = search_request(state, requests, state.stream_break.side == client)
        if outcome != Outcome.DONE or not requests.in_sync:
            return outcome
    counts.framed_from = requests.base
    if piece.side == client and piece.base >= 0:
        counts.framed_from = piece.base
        piece.base = -1
    return Outcome.DONE


@device_function
def frame_both(state: CorrelatorState, number: int, client: int) -> int:
    """Frame the held bytes of both streams in sync, and pair what is ready; return an `Outcome`."""
    outcome = frame_held(state, number, client)
    if outcome == Outcome.DONE:
        outcome = frame_held(state, number, 1 - client)
    if outcome == Outcome.DONE:
        outcome = match_ready(state, number)
    return outcome
