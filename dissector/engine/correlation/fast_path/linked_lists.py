"""Device functions for linked lists of entries and the bytes that entries refer to."""

from __future__ import annotations

from dissector.capture.columns import NEVER
from dissector.engine.correlation.both_paths.correlator_arrays import CorrelatorArrays
from dissector.engine.correlation.both_paths.state_columns import (
    CARRIED_BYTES,
    CARRY_OVER_BASE,
    COPY_COUNT,
    CORRELATION_ID,
    ENTRIES_LIVE,
    ENTRIES_USED,
    FIRST_FRAGMENT,
    FRAGMENT_COUNT,
    FRAGMENT_PACKET,
    FRAGMENT_TIME,
    FREE_ENTRY,
    LAST_FRAGMENT,
    LENGTH,
    NEXT,
    PACKET,
    START,
)
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import U8, I64Table
from dissector.kernel.memcpy import copy_bytes

LIST_HEAD, NOT_FOUND, TOO_FAR = -1, -2, -3
"""
Instead of the entry before a request: the request is the first of its list; no request has the
correlation id; or none was found within `MAX_STEPS`.
"""

MAX_STEPS = 256
"""
Requests that are compared with a response; with more requests before it the slow path looks it up.
"""


@Kernel
def copy_ranges(copies: I64Table, count: int, data: U8, carry_over: U8, target: U8) -> None:
    """Copy ranges of the window and of the carry-over buffer."""
    for i in range(count):
        if copies[i, 0] < CARRY_OVER_BASE:
            copy_bytes(target, copies[i, 1], data, copies[i, 0], copies[i, 2])
        else:
            copy_bytes(
                target, copies[i, 1], carry_over, copies[i, 0] - CARRY_OVER_BASE, copies[i, 2]
            )


@device_function
def new_entry(state: CorrelatorArrays) -> int:
    """Return an entry for use."""
    entry = state.counters[FREE_ENTRY]
    if entry < 0:
        entry = state.counters[ENTRIES_USED]
        state.counters[ENTRIES_USED] = entry + 1
    else:
        state.counters[FREE_ENTRY] = state.entries[entry, NEXT]
    state.counters[ENTRIES_LIVE] += 1
    state.entries[entry, NEXT] = -1
    return int(entry)


@device_function
def free_entry(state: CorrelatorArrays, entry: int) -> None:
    """Return an entry to the list of free ones."""
    state.entries[entry, START] = CARRY_OVER_BASE
    state.entries[entry, LENGTH] = 0
    state.entries[entry, PACKET] = NEVER
    state.entries[entry, NEXT] = state.counters[FREE_ENTRY]
    state.counters[FREE_ENTRY] = entry
    state.counters[ENTRIES_LIVE] -= 1


@device_function
def find_request(entries: I64Table, first: int, correlation_id: int) -> int:
    """Return the entry before the first request with a correlation id, or a constant from above."""
    previous, entry = LIST_HEAD, first
    for _ in range(MAX_STEPS):
        if entry < 0:
            return NOT_FOUND
        if entries[entry, CORRELATION_ID] == correlation_id:
            return previous
        previous, entry = entry, entries[entry, NEXT]
    return TOO_FAR if entry >= 0 else NOT_FOUND


@device_function
def read_head(state: CorrelatorArrays, fragment: int, count: int) -> int:
    """Copy up to `count` first bytes of a fragmented frame to one place; return their number."""
    end = 0
    while fragment >= 0 and end < count:
        length = min(state.entries[fragment, LENGTH], count - end)
        if state.entries[fragment, START] < CARRY_OVER_BASE:
            copy_bytes(state.frame_head, end, state.data, state.entries[fragment, START], length)
        else:
            copy_bytes(
                state.frame_head,
                end,
                state.carry_over,
                state.entries[fragment, START] - CARRY_OVER_BASE,
                length,
            )
        end += length
        fragment = state.entries[fragment, NEXT]
    return end


@device_function
def join_fragments(
    state: CorrelatorArrays, connection: int, at: int, address: int, length: int
) -> int:
    """
    Schedule the copies that join a fragmented frame; return its address.

    `length` more bytes, from `address` on, follow the fragments.
    """
    start = state.counters[CARRIED_BYTES]
    end = start
    count = state.counters[COPY_COUNT]
    fragment = state.connections[connection, at + FIRST_FRAGMENT]
    while fragment >= 0:
        state.copies[count, 0] = state.entries[fragment, START]
        state.copies[count, 1] = end
        state.copies[count, 2] = state.entries[fragment, LENGTH]
        end += state.entries[fragment, LENGTH]
        count += 1
        after = state.entries[fragment, NEXT]
        free_entry(state, fragment)
        fragment = after
    state.copies[count, 0] = address
    state.copies[count, 1] = end
    state.copies[count, 2] = length
    state.counters[CARRIED_BYTES] = end + length
    state.counters[COPY_COUNT] = count + 1
    state.connections[connection, at + FIRST_FRAGMENT] = -1
    state.connections[connection, at + LAST_FRAGMENT] = -1
    state.connections[connection, at + FRAGMENT_COUNT] = 0
    return int(CARRY_OVER_BASE + start)


@device_function
def append_fragment(
    state: CorrelatorArrays,
    connection: int,
    at: int,
    address: int,
    length: int,
    packet: int,
    time_ns: int,
) -> None:
    """Append bytes to the fragments of a side's incomplete frame."""
    fragment = new_entry(state)
    state.entries[fragment, START] = address
    state.entries[fragment, LENGTH] = length
    state.entries[fragment, PACKET] = NEVER
    state.entries[fragment, FRAGMENT_PACKET] = packet
    state.entries[fragment, FRAGMENT_TIME] = time_ns
    if state.connections[connection, at + LAST_FRAGMENT] < 0:
        state.connections[connection, at + FIRST_FRAGMENT] = fragment
    else:
        state.entries[state.connections[connection, at + LAST_FRAGMENT], NEXT] = fragment
    state.connections[connection, at + LAST_FRAGMENT] = fragment
    state.connections[connection, at + FRAGMENT_COUNT] += 1
