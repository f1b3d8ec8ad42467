"""
Device functions for the pool of entries, and for the requests in flight.

Requests are listed by age, and found by correlation id: of several with one id the oldest is the
first of a list, which a hash finds.
"""

from __future__ import annotations

from dissector.capture.hashing import hash_key
from dissector.engine.correlation.correlator_arrays import CorrelatorState
from dissector.engine.correlation.correlator_rows import CARRY_OVER_BASE, ConnectionRow
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I64, U8
from dissector.kernel.memcpy import copy_bytes

MAX_SUPPRESSED = 1000
"""
Ids of requests without a response (acks = 0) that are remembered, should one come all the same.
"""


@Kernel
def copy_ranges(
    source: I64, length: I64, destination: I64, data: U8, carry_over: U8, target: U8
) -> None:
    """Copy ranges of the window and of the carry-over buffer to offsets of another buffer."""
    for i in range(len(source)):
        if source[i] < CARRY_OVER_BASE:
            copy_bytes(target, destination[i], data, source[i], length[i])
        else:
            copy_bytes(target, destination[i], carry_over, source[i] - CARRY_OVER_BASE, length[i])


@device_function
def has_room(state: CorrelatorState, connection: ConnectionRow, frames: int) -> bool:
    """Return whether there is room for all that a number of frames may add."""
    counts = state.counts
    rows = connection.open_count + connection.ready_count + frames + 2
    return (
        counts.exchange_count + rows <= len(state.exchanges.connection)
        and counts.entries_live + frames + 4 <= len(state.entries)
        and counts.emitter_count < len(state.emitters)
        and counts.rings_used < len(state.suppressed)
    )


@device_function
def reserve(state: CorrelatorState, size: int) -> bool:
    """Return whether the carry-over buffer has room; else ask for it."""
    state.counts.wanted_bytes = size
    return state.counts.carried_bytes + size <= len(state.carry_over)


@device_function
def new_entry(state: CorrelatorState, is_waiting: bool) -> int:
    """Return the number of an entry for use."""
    counts = state.counts
    number = counts.free_entry
    if number < 0:
        number = counts.entries_used
        counts.entries_used = number + 1
    else:
        counts.free_entry = state.entries[number].next
    counts.entries_live += 1
    entry = state.entries[number]
    entry.next = -1
    entry.is_waiting = is_waiting
    return number


@device_function
def free_entry(state: CorrelatorState, number: int) -> None:
    """Return an entry to the list of unused ones."""
    entry = state.entries[number]
    entry.is_waiting = False
    entry.start = CARRY_OVER_BASE
    entry.length = 0
    entry.next = state.counts.free_entry
    state.counts.free_entry = number
    state.counts.entries_live -= 1


@device_function
def free_list(state: CorrelatorState, number: int) -> None:
    """Free the entries from one on."""
    while number >= 0:
        after = state.entries[number].next
        free_entry(state, number)
        number = after


@device_function
def copy_address(state: CorrelatorState, target: int, address: int, length: int) -> None:
    """Copy bytes to an offset of the carry-over buffer."""
    if address < CARRY_OVER_BASE:
        copy_bytes(state.carry_over, target, state.data, address, length)
    else:
        copy_bytes(state.carry_over, target, state.carry_over, address - CARRY_OVER_BASE, length)


@device_function
def byte_at(state: CorrelatorState, address: int) -> int:
    """Return a byte of the window or of the carry-over buffer."""
    if address < CARRY_OVER_BASE:
        return state.data[address]
    return state.carry_over[address - CARRY_OVER_BASE]


@device_function
def bucket_of(state: CorrelatorState, number: int, correlation_id: int) -> int:
    """Return the bucket of a connection and a correlation id."""
    key = (number & 0x7FFFFFFF) << 32 | (correlation_id & 0xFFFFFFFF)
    return hash_key(state.secret, key) & (len(state.buckets) - 1)


@device_function
def find_request(state: CorrelatorState, number: int, correlation_id: int) -> int:
    """Return the oldest request in flight with a correlation id; -1 without one."""
    if state.connections[number].oldest_request < 0:
        return -1
    found = state.buckets[bucket_of(state, number, correlation_id)]
    while found >= 0:
        entry = state.entries[found]
        if entry.correlation_id == correlation_id and entry.connection == number:
            return found
        found = entry.next_in_bucket
    return -1


@device_function
def list_by_id(state: CorrelatorState, number: int, request: int) -> None:
    """Make a request the last one with its correlation id."""
    entry = state.entries[request]
    entry.connection = number
    entry.next_same = -1
    first = find_request(state, number, entry.correlation_id)
    if first >= 0:
        state.entries[state.entries[first].last_same].next_same = request
        state.entries[first].last_same = request
        return
    bucket = bucket_of(state, number, entry.correlation_id)
    entry.last_same = request
    entry.next_in_bucket = state.buckets[bucket]
    state.buckets[bucket] = request


@device_function
def unlist(state: CorrelatorState, number: int, request: int) -> None:
    """Remove the first request with its correlation id; the next one takes its place."""
    entry = state.entries[request]
    follower = entry.next_same
    if follower >= 0:
        state.entries[follower].last_same = entry.last_same
        state.entries[follower].next_in_bucket = entry.next_in_bucket
    else:
        follower = entry.next_in_bucket
    bucket = bucket_of(state, number, entry.correlation_id)
    before = state.buckets[bucket]
    if before == request:
        state.buckets[bucket] = follower
        return
    while state.entries[before].next_in_bucket != request:
        before = state.entries[before].next_in_bucket
    state.entries[before].next_in_bucket = follower


@Kernel
def rehash(connections: I64, state: CorrelatorState) -> None:
    """List the requests of some connections by correlation id, in empty buckets."""
    for i in range(len(connections)):
        number = connections[i]
        request = state.connections[number].oldest_request
        while request >= 0:
            entry = state.entries[request]
            if has_id(state, request):
                list_by_id(state, number, request)
            request = entry.next


@device_function
def has_id(state: CorrelatorState, request: int) -> bool:
    """Return whether a request is found by its correlation id: no token, and not cut before it."""
    entry = state.entries[request]
    return not entry.is_token and entry.length >= 8


@device_function
def enqueue(state: CorrelatorState, number: int, request: int) -> None:
    """Add a request to those in flight; the caller keeps the limits."""
    connection, entry = state.connections[number], state.entries[request]
    if entry.is_token or entry.in_login:
        connection.tokens_seen = True
    if entry.is_token:
        entry.next_same = -1
        if connection.last_token < 0:
            connection.first_token = request
        else:
            state.entries[connection.last_token].next_same = request
        connection.last_token = request
        connection.token_count += 1
    elif has_id(state, request):
        widen_ids(connection, entry.correlation_id)
        list_by_id(state, number, request)
    entry.next = -1
    entry.previous = connection.newest_request
    if connection.newest_request < 0:
        connection.oldest_request = request
    else:
        state.entries[connection.newest_request].next = request
    connection.newest_request = request
    connection.open_count += 1
    connection.open_bytes += entry.length


@device_function
def widen_ids(connection: ConnectionRow, correlation_id: int) -> None:
    """Widen the bounds of the ids in flight."""
    if connection.open_count == 0:
        connection.lowest_open_id = correlation_id
        connection.highest_open_id = correlation_id
    connection.lowest_open_id = min(connection.lowest_open_id, correlation_id)
    connection.highest_open_id = max(connection.highest_open_id, correlation_id)


@device_function
def dequeue(state: CorrelatorState, number: int, request: int) -> None:
    """Remove a request in flight: the oldest of its id, or the oldest token; free its entry."""
    connection, entry = state.connections[number], state.entries[request]
    if entry.is_token:
        connection.first_token = entry.next_same
        if entry.next_same < 0:
            connection.last_token = -1
        connection.token_count -= 1
    elif has_id(state, request):
        unlist(state, number, request)
    if entry.previous < 0:
        connection.oldest_request = entry.next
    else:
        state.entries[entry.previous].next = entry.next
    if entry.next < 0:
        connection.newest_request = entry.previous
    else:
        state.entries[entry.next].previous = entry.previous
    connection.open_count -= 1
    connection.open_bytes -= entry.length
    free_entry(state, request)


SUPPRESSED_CELLS = 2 * MAX_SUPPRESSED + 1024
"""
Cells of a row of suppressed ids: the newest ones, as a ring; of each the number of the one before
with the same hash; and of each hash the number of the newest one. Numbers count from 1; 0: none.
"""

_HEADS, _HASHES = 2 * MAX_SUPPRESSED, 1024


@device_function
def suppress(state: CorrelatorState, connection: ConnectionRow, correlation_id: int) -> None:
    """Record the correlation id of a suppressed response in the ring of the connection."""
    if connection.suppressed_ring < 0:
        connection.suppressed_ring = new_ring(state)
    at = connection.suppressed_count % MAX_SUPPRESSED
    connection.suppressed_count += 1
    state.suppressed[connection.suppressed_ring, at] = correlation_id
    chain_suppressed(state, connection.suppressed_ring, connection.suppressed_count)


@device_function
def chain_suppressed(state: CorrelatorState, ring: int, count: int) -> None:
    """Make the suppressed id of a number the newest one with its hash."""
    at = (count - 1) % MAX_SUPPRESSED
    head = head_of(state, state.suppressed[ring, at])
    state.suppressed[ring, MAX_SUPPRESSED + at] = state.suppressed[ring, head]
    state.suppressed[ring, head] = count


@Kernel
def rehash_suppressed(connections: I64, state: CorrelatorState) -> None:
    """Chain the suppressed ids of connections again, as hashes have another key."""
    for i in range(len(connections)):
        connection = state.connections[connections[i]]
        ring, count = connection.suppressed_ring, connection.suppressed_count
        for k in range(_HEADS, SUPPRESSED_CELLS):
            state.suppressed[ring, k] = 0
        for each in range(max(count - MAX_SUPPRESSED, 0), count):
            chain_suppressed(state, ring, each + 1)


@device_function
def new_ring(state: CorrelatorState) -> int:
    """Return an empty row for suppressed ids."""
    counts = state.counts
    ring = counts.free_ring
    if ring < 0:
        ring = counts.rings_used
        counts.rings_used = ring + 1
    else:
        counts.free_ring = state.next_ring[ring]
    for k in range(_HEADS, SUPPRESSED_CELLS):
        state.suppressed[ring, k] = 0
    return ring


@device_function
def head_of(state: CorrelatorState, correlation_id: int) -> int:
    """Return the cell with the newest suppressed id of the same hash."""
    return _HEADS + hash_key(state.secret, correlation_id & 0xFFFFFFFF) % _HASHES


@device_function
def free_ring(state: CorrelatorState, connection: ConnectionRow) -> None:
    """Drop the suppressed ids of a connection."""
    ring = connection.suppressed_ring
    if ring >= 0:
        state.next_ring[ring] = state.counts.free_ring
        state.counts.free_ring = ring
    connection.suppressed_ring = -1
    connection.suppressed_count = 0


@device_function
def is_suppressed(state: CorrelatorState, connection: ConnectionRow, correlation_id: int) -> bool:
    """Return whether the response to a request of this id is suppressed."""
    ring, count = connection.suppressed_ring, connection.suppressed_count
    if ring < 0:
        return False
    found: int = state.suppressed[ring, head_of(state, correlation_id)]
    while found > max(count - MAX_SUPPRESSED, 0):
        at = (found - 1) % MAX_SUPPRESSED
        if state.suppressed[ring, at] == correlation_id:
            return True
        found = state.suppressed[ring, MAX_SUPPRESSED + at]
    return False


@device_function
def may_have_asked(state: CorrelatorState, number: int, correlation_id: int) -> bool:
    """
    Return whether a request so far has the id of the first response, or may have had it.

    Requests that wait for their turn are examined once; `queue_frame` watches for later ones.
    """
    connection = state.connections[number]
    if find_request(state, number, correlation_id) >= 0:
        return True
    if is_suppressed(state, connection, correlation_id):
        return True
    is_past = 0 <= correlation_id <= connection.highest_id
    if is_past and connection.suppressed_count > MAX_SUPPRESSED:
        return True  # it may be forgotten
    if connection.awaited_id == correlation_id:
        return False
    queued = connection.sides[connection.client].first_ready
    while queued >= 0:
        entry = state.entries[queued]
        if entry.length >= 8 and entry.correlation_id == correlation_id:
            return True
        queued = entry.next
    connection.awaited_id = correlation_id
    return False
