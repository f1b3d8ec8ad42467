"""Device functions for linked lists of entries and the bytes that entries refer to."""

from __future__ import annotations

from dissector.engine.correlation.both_paths.correlator_rows import (
    CARRY_OVER_BASE,
    ConnectionRow,
    Copy,
    CorrelatorState,
    Entry,
    SideRow,
)
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import U8
from dissector.kernel.memcpy import copy_bytes
from dissector.kernel.named_rows import Rows

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
def copy_ranges(copies: Rows[Copy], count: int, data: U8, carry_over: U8, target: U8) -> None:
    """Copy ranges of the window and of the carry-over buffer."""
    for i in range(count):
        copy = copies[i]
        if copy.source < CARRY_OVER_BASE:
            copy_bytes(target, copy.target, data, copy.source, copy.length)
        else:
            copy_bytes(target, copy.target, carry_over, copy.source - CARRY_OVER_BASE, copy.length)


@device_function
def new_entry(state: CorrelatorState, is_frame: bool) -> int:
    """Return the number of an entry for use."""
    counts = state.counts
    number = counts.free_entry
    if number < 0:
        number = counts.entries_used
        counts.entries_used = number + 1
    else:
        counts.free_entry = state.entries[number].next
    counts.entries_live += 1
    state.entries[number].next = -1
    state.entries[number].is_frame = is_frame
    return number


@device_function
def free_entry(state: CorrelatorState, number: int) -> None:
    """Return an entry to the list of unused ones."""
    entry = state.entries[number]
    entry.is_frame = False
    entry.start = CARRY_OVER_BASE
    entry.length = 0
    entry.next = state.counts.free_entry
    state.counts.free_entry = number
    state.counts.entries_live -= 1


@device_function
def find_request(entries: Rows[Entry], first: int, correlation_id: int) -> int:
    """Return the entry before the first request with a correlation id, or a constant from above."""
    previous, number = LIST_HEAD, first
    for _ in range(MAX_STEPS):
        if number < 0:
            return NOT_FOUND
        if entries[number].correlation_id == correlation_id:
            return previous
        previous, number = number, entries[number].next
    return TOO_FAR if number >= 0 else NOT_FOUND


@device_function
def read_head(state: CorrelatorState, fragment: int, count: int) -> int:
    """Copy up to `count` first bytes of a fragmented frame to one place; return their number."""
    end = 0
    while fragment >= 0 and end < count:
        entry = state.entries[fragment]
        start, length = entry.start, min(entry.length, count - end)
        if start < CARRY_OVER_BASE:
            copy_bytes(state.frame_head, end, state.data, start, length)
        else:
            copy_bytes(state.frame_head, end, state.carry_over, start - CARRY_OVER_BASE, length)
        end += length
        fragment = entry.next
    return end


@device_function
def join_fragments(state: CorrelatorState, stream: SideRow, address: int, length: int) -> int:
    """
    Schedule the copies that join a fragmented frame; return its address.

    `length` more bytes, from `address` on, follow the fragments.
    """
    start = state.counts.carried_bytes
    end = start
    fragment = stream.first_fragment
    while fragment >= 0:
        entry = state.entries[fragment]
        schedule_copy(state, entry.start, end, entry.length)
        end += entry.length
        after = entry.next
        free_entry(state, fragment)
        fragment = after
    schedule_copy(state, address, end, length)
    state.counts.carried_bytes = end + length
    clear_fragments(stream)
    return CARRY_OVER_BASE + start


@device_function
def schedule_copy(state: CorrelatorState, source: int, target: int, length: int) -> None:
    """Append a copy to the carry-over buffer."""
    copy = state.copies[state.counts.copy_count]
    copy.source = source
    copy.target = target
    copy.length = length
    state.counts.copy_count += 1


@device_function
def clear_fragments(stream: SideRow) -> None:
    """Empty the list of fragments of a side."""
    stream.first_fragment = -1
    stream.last_fragment = -1
    stream.fragment_count = 0


@device_function
def append_fragment(
    state: CorrelatorState, stream: SideRow, address: int, length: int, packet: int, time_ns: int
) -> None:
    """Append bytes to the fragments of a side's incomplete frame."""
    number = new_entry(state, False)
    fragment = state.entries[number]
    fragment.start = address
    fragment.length = length
    fragment.packet = packet
    fragment.time_ns = time_ns
    if stream.last_fragment < 0:
        stream.first_fragment = number
    else:
        state.entries[stream.last_fragment].next = number
    stream.last_fragment = number
    stream.fragment_count += 1


@device_function
def is_unfinished_request(
    state: CorrelatorState, connection: ConnectionRow, correlation_id: int
) -> bool:
    """Return whether the unfinished or damaged request of a connection has a correlation id."""
    stream = connection.sides[connection.client]
    if stream.damaged >= 0:
        return state.entries[stream.damaged].correlation_id == correlation_id
    if not stream.in_sync or stream.skips_damaged or stream.buffered_bytes < 12:
        return False
    found = 0
    for at in range(8, 12):
        found = found << 8 | fragment_byte(state, stream.first_fragment, at)
    return (found ^ 0x80000000) - 0x80000000 == correlation_id


@device_function
def fragment_byte(state: CorrelatorState, fragment: int, at: int) -> int:
    """Return one of the first bytes of a fragmented frame."""
    while state.entries[fragment].length <= at:
        at -= state.entries[fragment].length
        fragment = state.entries[fragment].next
    address = state.entries[fragment].start + at
    if address < CARRY_OVER_BASE:
        return state.data[address]
    return state.carry_over[address - CARRY_OVER_BASE]


@device_function
def drop_fragments(state: CorrelatorState, stream: SideRow) -> None:
    """Skip the bytes of an unfinished frame, or of no frame."""
    stream.skipped += stream.buffered_bytes
    stream.base += stream.buffered_bytes
    stream.buffered_bytes = 0
    fragment = stream.first_fragment
    while fragment >= 0:
        after = state.entries[fragment].next
        free_entry(state, fragment)
        fragment = after
    clear_fragments(stream)
