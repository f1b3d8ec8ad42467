"""Device functions for linked lists of entries and the bytes that entries refer to."""

from __future__ import annotations

from dissector.capture.columns import NEVER
from dissector.engine.correlation.state_columns import (
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
from dissector.kernel.arrays import I64, U8, I64Table
from dissector.kernel.memcpy import copy_bytes

LIST_HEAD, NOT_FOUND, TOO_FAR = -1, -2, -3
"""
Instead of the entry before a request: the request is the first of its list; no request has the
correlation id; or none was found within `MAX_STEPS`.
"""

MAX_STEPS = 64
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
def new_entry(counters: I64, entries: I64Table) -> int:
    """Return an entry for use."""
    entry = counters[FREE_ENTRY]
    if entry < 0:
        entry = counters[ENTRIES_USED]
        counters[ENTRIES_USED] = entry + 1
    else:
        counters[FREE_ENTRY] = entries[entry, NEXT]
    counters[ENTRIES_LIVE] += 1
    entries[entry, NEXT] = -1
    return int(entry)


@device_function
def free_entry(counters: I64, entries: I64Table, entry: int) -> None:
    """Return an entry to the list of free ones."""
    entries[entry, START] = CARRY_OVER_BASE
    entries[entry, LENGTH] = 0
    entries[entry, PACKET] = NEVER
    entries[entry, NEXT] = counters[FREE_ENTRY]
    counters[FREE_ENTRY] = entry
    counters[ENTRIES_LIVE] -= 1


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
def read_head(
    frame_head: U8, data: U8, carry_over: U8, entries: I64Table, fragment: int, count: int
) -> int:
    """Copy the first bytes of a frame in fragments to one place, up to `count`; return how many."""
    end = 0
    while fragment >= 0 and end < count:
        length = min(entries[fragment, LENGTH], count - end)
        if entries[fragment, START] < CARRY_OVER_BASE:
            copy_bytes(frame_head, end, data, entries[fragment, START], length)
        else:
            copy_bytes(
                frame_head, end, carry_over, entries[fragment, START] - CARRY_OVER_BASE, length
            )
        end += length
        fragment = entries[fragment, NEXT]
    return end


@device_function
def join_fragments(
    counters: I64,
    connections: I64Table,
    entries: I64Table,
    copies: I64Table,
    connection: int,
    at: int,
    address: int,
    length: int,
) -> int:
    """
    Schedule the copies that join a fragmented frame; return its address.

    `length` more bytes, from `address` on, follow the fragments.
    """
    start = counters[CARRIED_BYTES]
    end = start
    count = counters[COPY_COUNT]
    fragment = connections[connection, at + FIRST_FRAGMENT]
    while fragment >= 0:
        copies[count, 0] = entries[fragment, START]
        copies[count, 1] = end
        copies[count, 2] = entries[fragment, LENGTH]
        end += entries[fragment, LENGTH]
        count += 1
        after = entries[fragment, NEXT]
        free_entry(counters, entries, fragment)
        fragment = after
    copies[count, 0] = address
    copies[count, 1] = end
    copies[count, 2] = length
    counters[CARRIED_BYTES] = end + length
    counters[COPY_COUNT] = count + 1
    connections[connection, at + FIRST_FRAGMENT] = -1
    connections[connection, at + LAST_FRAGMENT] = -1
    connections[connection, at + FRAGMENT_COUNT] = 0
    return int(CARRY_OVER_BASE + start)


@device_function
def append_fragment(
    counters: I64,
    connections: I64Table,
    entries: I64Table,
    connection: int,
    at: int,
    address: int,
    length: int,
    packet: int,
    time_ns: int,
) -> None:
    """Append bytes to the fragments of a side's incomplete frame."""
    fragment = new_entry(counters, entries)
    entries[fragment, START] = address
    entries[fragment, LENGTH] = length
    entries[fragment, PACKET] = NEVER
    entries[fragment, FRAGMENT_PACKET] = packet
    entries[fragment, FRAGMENT_TIME] = time_ns
    if connections[connection, at + LAST_FRAGMENT] < 0:
        connections[connection, at + FIRST_FRAGMENT] = fragment
    else:
        entries[connections[connection, at + LAST_FRAGMENT], NEXT] = fragment
    connections[connection, at + LAST_FRAGMENT] = fragment
    connections[connection, at + FRAGMENT_COUNT] += 1
