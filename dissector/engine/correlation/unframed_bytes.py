"""
Device functions for the bytes of a stream that are not framed yet; see `correlator_rows`.

As fragments they stay where they are. Held, they lie in one place, which grows to twice its size:
so each byte is copied a bounded number of times.
"""

from __future__ import annotations

from dissector.engine.correlation.correlator_arrays import CorrelatorState
from dissector.engine.correlation.correlator_rows import CARRY_OVER_BASE, PacketEnd, SideRow
from dissector.engine.correlation.entries import (
    byte_at,
    copy_address,
    free_entry,
    free_list,
    new_entry,
    reserve,
)
from dissector.engine.tables.exchange_table import NONE
from dissector.kernel import device_function

MAX_UNASKED_BYTES = 1 << 10
"""
Bytes of a server that are retained before any request: the first ones, which may be those of a
proxy, and as many of the newest ones, as a response may be captured before its request.
"""

MAX_PREFACE_BYTES = 1 << 17
"""Bytes before the first frame that are examined: more than the largest header of a proxy."""


@device_function
def append_fragment(
    state: CorrelatorState, stream: SideRow, address: int, length: int, packet: int, time_ns: int
) -> None:
    """Append bytes that stay where they are."""
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
    stream.buffered_bytes += length


@device_function
def drop_fragments(state: CorrelatorState, stream: SideRow) -> None:
    """Empty the list of fragments."""
    free_list(state, stream.first_fragment)
    stream.first_fragment = -1
    stream.last_fragment = -1
    stream.fragment_count = 0
    stream.buffered_bytes = 0
    stream.frame_size = 0


@device_function
def copy_fragments(state: CorrelatorState, stream: SideRow, target: int) -> int:
    """Copy the fragments to an offset of the carry-over buffer; return the end."""
    fragment = stream.first_fragment
    while fragment >= 0:
        entry = state.entries[fragment]
        copy_address(state, target, entry.start, entry.length)
        target += entry.length
        fragment = entry.next
    return target


@device_function
def read_head(state: CorrelatorState, stream: SideRow, count: int) -> int:
    """Copy up to `count` first bytes of the fragments to one place; return their number."""
    end = 0
    fragment = stream.first_fragment
    while fragment >= 0 and end < count:
        entry = state.entries[fragment]
        length = min(entry.length, count - end)
        for k in range(length):
            address = entry.start + k
            if address < CARRY_OVER_BASE:
                state.frame_head[end + k] = state.data[address]
            else:
                state.frame_head[end + k] = state.carry_over[address - CARRY_OVER_BASE]
        end += length
        fragment = entry.next
    return end


@device_function
def copy_tail(state: CorrelatorState, stream: SideRow, count: int) -> bool:
    """Copy the last bytes of a stream to one place; return whether they are in one fragment."""
    last = stream.last_fragment
    if last < 0 or state.entries[last].length < count:
        return False
    first = state.entries[last].start + state.entries[last].length - count
    for k in range(count):
        state.frame_head[k] = byte_at(state, first + k)
    return True


@device_function
def hold(
    state: CorrelatorState, stream: SideRow, address: int, length: int, packet: int, time_ns: int
) -> bool:
    """
    Append bytes of a packet, none if the length is 0, to held bytes; fragments become held ones.

    Returns:
        Whether there was room; else nothing has changed.
    """
    if not has_held(state, stream, length):
        return False
    if length > 0:
        held = state.entries[stream.held]
        target = held.start - CARRY_OVER_BASE + stream.buffered_bytes
        copy_address(state, target, address, length)
        stream.buffered_bytes += length
        append_end(state, stream, stream.base + stream.buffered_bytes, packet, time_ns)
    return True


@device_function
def has_held(state: CorrelatorState, stream: SideRow, more: int) -> bool:
    """Make the bytes of a stream held ones, with room for more and for one more packet."""
    counts, size = state.counts, stream.buffered_bytes + more
    ends = stream.end_count + stream.fragment_count + (1 if more > 0 else 0)
    is_new = stream.held < 0
    room = 0 if is_new else state.entries[stream.held].length
    if size == 0 or (not is_new and size <= room and ends <= stream.end_room):
        return True
    counts.wanted_ends = 2 * ends
    has_entry = counts.entries_live + 2 <= len(state.entries)
    if not has_entry or counts.ends_used + 2 * ends > len(state.ends):
        counts.wanted_bytes = 0
        return False
    if size > room:
        room = size if is_new else 2 * size
        if not reserve(state, room):
            return False
        move_held(state, stream, room)
    if ends > stream.end_room:
        move_ends(state, stream, ends if is_new else 2 * ends)
        add_fragment_ends(state, stream)
    return True


@device_function
def move_held(state: CorrelatorState, stream: SideRow, room: int) -> None:
    """Move the bytes of a stream to the end of the carry-over buffer; room is reserved there."""
    counts, target = state.counts, state.counts.carried_bytes
    counts.carried_bytes = target + room
    if stream.held < 0:
        copy_fragments(state, stream, target)
        stream.held = new_entry(state, False)
    else:
        copy_address(state, target, state.entries[stream.held].start, stream.buffered_bytes)
    held = state.entries[stream.held]
    held.start = CARRY_OVER_BASE + target
    held.length = room


@device_function
def move_ends(state: CorrelatorState, stream: SideRow, room: int) -> None:
    """Move the ends of packets to the end of their table; room is reserved there."""
    first = state.counts.ends_used
    for k in range(stream.end_count):
        from_end, to_end = state.ends[stream.first_end + k], state.ends[first + k]
        to_end.end = from_end.end
        to_end.packet = from_end.packet
        to_end.time_ns = from_end.time_ns
    state.counts.ends_used = first + room
    stream.first_end = first
    stream.end_room = room


@device_function
def add_fragment_ends(state: CorrelatorState, stream: SideRow) -> None:
    """Replace the fragments, whose bytes are held now, by ends of packets."""
    fragment, end, size = stream.first_fragment, stream.base, stream.buffered_bytes
    while fragment >= 0:
        entry = state.entries[fragment]
        end += entry.length
        append_end(state, stream, end, entry.packet, entry.time_ns)
        fragment = entry.next
    drop_fragments(state, stream)
    stream.buffered_bytes = size


@device_function
def append_end(
    state: CorrelatorState, stream: SideRow, end: int, packet: int, time_ns: int
) -> None:
    """Append the end of a packet; there is room."""
    row = state.ends[stream.first_end + stream.end_count]
    row.end = end
    row.packet = packet
    row.time_ns = time_ns
    stream.end_count += 1


@device_function
def release(state: CorrelatorState, stream: SideRow) -> None:
    """Give back the place of held bytes; frames may refer to its begin."""
    held = state.entries[stream.held]
    behind = held.start + held.length - CARRY_OVER_BASE
    if behind == state.counts.carried_bytes:
        state.counts.carried_bytes = behind - held.length + stream.buffered_bytes
    if stream.first_end + stream.end_room == state.counts.ends_used:
        state.counts.ends_used = stream.first_end
    free_entry(state, stream.held)
    stream.held = -1
    stream.end_count = 0
    stream.end_room = 0


@device_function
def to_fragments(state: CorrelatorState, stream: SideRow) -> None:
    """Turn held bytes into fragments, if there is room for these."""
    count = stream.end_count
    if state.counts.entries_live + count + 2 > len(state.entries):
        return
    address, base, first = state.entries[stream.held].start, stream.base, stream.first_end
    size = stream.buffered_bytes
    release(state, stream)
    stream.buffered_bytes = 0
    for k in range(first, first + count):
        row = state.ends[k]
        append_fragment(state, stream, address, row.end - base, row.packet, row.time_ns)
        address += row.end - base
        base = row.end
    stream.buffered_bytes = size


@device_function
def origin_of(state: CorrelatorState, stream: SideRow) -> int:
    """Return the offset of held bytes in the carry-over buffer."""
    return state.entries[stream.held].start - CARRY_OVER_BASE


@device_function
def end_index(state: CorrelatorState, stream: SideRow, end: int) -> int:
    """Return the number of the packet with the byte before an offset in the stream."""
    low, high = stream.first_end, stream.first_end + stream.end_count
    while low < high:
        middle = (low + high) >> 1
        if state.ends[middle].end < end:
            low = middle + 1
        else:
            high = middle
    return low


@device_function
def packet_before(state: CorrelatorState, stream: SideRow, at: int) -> PacketEnd:
    """Return the packet with the byte before an offset of the held bytes."""
    return state.ends[end_index(state, stream, stream.base + at)]


@device_function
def ends_packet(state: CorrelatorState, stream: SideRow, at: int) -> bool:
    """Return whether a packet ends at an offset of the held bytes."""
    number = end_index(state, stream, stream.base + at)
    if number >= stream.first_end + stream.end_count:
        return False
    return state.ends[number].end == stream.base + at


@device_function
def starts_packet(state: CorrelatorState, stream: SideRow, at: int) -> bool:
    """Return whether a packet begins at an offset of the held bytes."""
    return bool(stream.at_packet_start) if at == 0 else ends_packet(state, stream, at)


@device_function
def drop(state: CorrelatorState, stream: SideRow, count: int) -> None:
    """Remove the first held bytes."""
    if count == 0:
        return
    held = state.entries[stream.held]
    held.start += count
    held.length -= count
    stream.buffered_bytes -= count
    stream.base += count
    stream.at_packet_start = False
    while stream.end_count > 0 and state.ends[stream.first_end].end <= stream.base:
        stream.at_packet_start = state.ends[stream.first_end].end == stream.base
        stream.first_end += 1
        stream.end_count -= 1
        stream.end_room -= 1
    if stream.buffered_bytes == 0:
        release(state, stream)


@device_function
def skip(state: CorrelatorState, stream: SideRow, count: int) -> None:
    """Skip the first held bytes, which contain no plausible frame."""
    stream.skipped += count
    if stream.base == 0 and count > 0:
        keep_preface(state, stream, min(count, MAX_PREFACE_BYTES))
    drop(state, stream, count)
    stream.scanned = max(stream.scanned, stream.base)


@device_function
def skip_fragments(state: CorrelatorState, stream: SideRow, count: int) -> None:
    """Skip the first bytes of fragments, behind the begin of the stream."""
    stream.skipped += count
    stream.base += count
    stream.buffered_bytes -= count
    stream.scanned = max(stream.scanned, stream.base)
    while count > 0:
        number = stream.first_fragment
        fragment = state.entries[number]
        skipped = min(fragment.length, count)
        fragment.start += skipped
        fragment.length -= skipped
        count -= skipped
        stream.at_packet_start = fragment.length == 0
        if fragment.length == 0:
            stream.first_fragment = fragment.next
            stream.fragment_count -= 1
            free_entry(state, number)
    if stream.first_fragment < 0:
        stream.last_fragment = -1


@device_function
def skip_unasked(state: CorrelatorState, stream: SideRow) -> bool:
    """Skip bytes of a server that no request can have caused; return whether there was room."""
    retained = min(MAX_UNASKED_BYTES, state.counts.min_retained_bytes)
    count = stream.buffered_bytes - retained
    if count <= retained:
        return True
    if stream.base == 0:
        if not hold(state, stream, 0, 0, 0, 0):
            return False
        skip(state, stream, retained)  # and keep as its preface
        count -= retained
    if stream.held < 0:
        skip_fragments(state, stream, count)
    else:
        skip(state, stream, count)
        to_fragments(state, stream)
    return True


@device_function
def skip_all(state: CorrelatorState, stream: SideRow) -> None:
    """Skip all bytes of a stream, held or not."""
    if stream.held >= 0:
        skip(state, stream, stream.buffered_bytes)
        return
    stream.skipped += stream.buffered_bytes
    stream.base += stream.buffered_bytes
    stream.scanned = max(stream.scanned, stream.base)
    drop_fragments(state, stream)


@device_function
def keep_preface(state: CorrelatorState, stream: SideRow, size: int) -> None:
    """Keep the first bytes of a stream, which a proxy may have sent."""
    stream.preface = new_entry(state, False)
    kept = state.entries[stream.preface]
    kept.start = state.entries[stream.held].start
    kept.length = size
    state.counts.preface_count += 1


@device_function
def forget_preface(state: CorrelatorState, stream: SideRow) -> None:
    """Drop the first bytes of a stream."""
    if stream.preface >= 0:
        free_entry(state, stream.preface)
        stream.preface = -1
        state.counts.preface_count -= 1


@device_function
def sync_at(state: CorrelatorState, stream: SideRow, at: int) -> None:
    """Start framing at an offset of the held bytes; the bytes before it are skipped."""
    if at > 0:
        skip(state, stream, at)
    stream.in_sync = True
    stream.resumed = 0
    if stream.entered == NONE:
        stream.entered = stream.base


@device_function
def lose_sync(stream: SideRow) -> None:
    """Take the next bytes for something else than a frame."""
    stream.in_sync = False
    stream.scanned = stream.base
