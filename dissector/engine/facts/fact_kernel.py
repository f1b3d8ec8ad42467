"""
The kernel that reads the facts of exchanges: client id, errors, topics, and names of topic ids.

It runs the programs of `dissector.protocol.fact_program` over request and response. A message that
does not match its program to the last byte is left to the codecs, which find the error.
"""

from __future__ import annotations

from dissector.engine.facts.fact_arrays import (
    FALLBACK,
    OUT_OF_ROOM,
    ExchangeArrays,
    FactArrays,
    ShortOf,
)
from dissector.engine.facts.fact_collector import collect_facts, drop_repeated_names
from dissector.engine.facts.interning import FULL, InternIndex, hash_integers, intern
from dissector.engine.tables.exchange_table import NONE
from dissector.engine.tape.tape_arrays import ProgramArrays, TapeRows
from dissector.engine.tape.tape_interpreter import FITS, read_message
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I64, U8
from dissector.protocol.headers import API_VERSIONS
from dissector.protocol.messages import UNSUPPORTED_VERSION

KEYS, VERSIONS = 1024, 64
"""Upper bounds of keys and versions of APIs."""

ERRORS, TOPICS = range(2)
"""Kinds of lists: of error codes, and of entries of texts."""

NEEDS_CODEC, EXTRACTED = range(2)
"""State of an exchange: the codecs have to read it; all its facts are extracted."""


@device_function
def _intern_list(content: I64, count: int, kind: int, lists: InternIndex, pool: I64) -> int:
    """Return the entry + 1 of a list, 0 for the empty one; or TOO_MANY_COLLISIONS or FULL."""
    if count == 0:
        return 0
    key = hash_integers(content, count, kind)
    entry = intern(content, 0, count, kind, key, lists, pool)
    return entry if entry < 0 else entry + 1


@device_function
def _is_unsupported_version(data: U8, carry_over: U8, start: int, size: int) -> bool:
    """Return whether an ApiVersions response reports UNSUPPORTED_VERSION: it is in v0 (KIP-511)."""
    if size < 6:
        return False
    if start < len(data):
        return bool(data[start + 4] == 0 and data[start + 5] == UNSUPPORTED_VERSION)
    start -= len(data)
    return bool(carry_over[start + 4] == 0 and carry_over[start + 5] == UNSUPPORTED_VERSION)


@device_function
def _read(
    data: U8,
    carry_over: U8,
    start: int,
    size: int,
    step: int,
    program: ProgramArrays,
    rows: TapeRows,
    row: int,
) -> int:
    """Read one message; return the next row of the tape, FALLBACK or OUT_OF_ROOM."""
    if step < 0:
        return FALLBACK
    source = data
    base = 0
    if start >= len(data):
        source = carry_over
        base = len(data)
    at = start - base
    state, _, next_row = read_message(source, at, at + size, base, step, program, rows, row)
    if next_row < 0:
        return OUT_OF_ROOM
    return next_row if state == FITS else FALLBACK


@device_function
def _read_exchange(
    data: U8,
    carry_over: U8,
    exchanges: ExchangeArrays,
    exchange: int,
    program: ProgramArrays,
    rows: TapeRows,
) -> int:
    """Read request and response; return the number of rows, FALLBACK or OUT_OF_ROOM."""
    if exchanges.token[exchange]:
        return 0
    start, captured = exchanges.response_start[exchange], exchanges.response_captured[exchange]
    if exchanges.request_start[exchange] == NONE:
        # An orphan has no facts but its correlation id.
        return 0 if captured >= 4 and not exchanges.answers_acks_0[exchange] else FALLBACK
    size = exchanges.request_size[exchange]
    if exchanges.request_captured[exchange] != size or exchanges.answers_acks_0[exchange]:
        return FALLBACK
    key, version = exchanges.api_key[exchange], exchanges.api_version[exchange]
    if key < 0 or key >= KEYS or version < 0 or version >= VERSIONS:
        return FALLBACK
    kind = key * VERSIONS + version
    first_steps = exchanges.first_steps[kind]
    begin, step = exchanges.request_start[exchange], first_steps.request
    count = _read(data, carry_over, begin, size, step, program, rows, 0)
    if count < 0 or start == NONE:
        return count
    size = exchanges.response_size[exchange]
    step = first_steps.response
    if captured != size:
        step = -1
    elif key == API_VERSIONS and _is_unsupported_version(data, carry_over, start, size):
        step = first_steps.refusal
    return _read(data, carry_over, start, size, step, program, rows, count)


@device_function
def _collect(
    data: U8,
    carry_over: U8,
    exchange: int,
    rows: TapeRows,
    texts: InternIndex,
    lists: InternIndex,
    found: FactArrays,
) -> int:
    """Write the facts of an exchange, from its rows; return 0, FALLBACK or OUT_OF_ROOM."""
    counters = found.counters
    names_before, fields_before = counters.names, counters.fields
    outcome = collect_facts(data, carry_over, exchange, rows, texts, found)
    error_list = 0
    topic_list = 0
    if outcome == 0:
        pool = found.list_pool
        error_list = _intern_list(found.current_errors, counters.errors, ERRORS, lists, pool)
        topic_list = _intern_list(found.current_topics, counters.topics, TOPICS, lists, pool)
        if error_list == FULL or topic_list == FULL:
            counters.short_of = ShortOf.LISTS
            outcome = OUT_OF_ROOM
        elif error_list < 0 or topic_list < 0:
            outcome = FALLBACK
        if outcome == 0:
            found.clients[exchange] = counters.client
            found.errors[exchange] = error_list
            found.topics[exchange] = topic_list
            drop_repeated_names(found, names_before, texts.entries)
        else:
            counters.names, counters.fields = names_before, fields_before
    return outcome


@Kernel
def read_facts(
    data: U8,
    carry_over: U8,
    exchanges: ExchangeArrays,
    program: ProgramArrays,
    rows: TapeRows,
    texts: InternIndex,
    lists: InternIndex,
    found: FactArrays,
) -> int:
    """
    Read exchanges from `counters.exchange` on.

    Returns:
        Number of remaining exchanges when an array is full; `counters.short_of` has the reason.
    """
    counters, state = found.counters, found.state
    exchange = counters.exchange
    while exchange < len(state):
        count = _read_exchange(data, carry_over, exchanges, exchange, program, rows)
        outcome = 0 if count >= 0 else count
        if count == OUT_OF_ROOM:
            counters.short_of = ShortOf.ROWS
        if count > 0:
            counters.attempt += 1
            counters.rows = count
            outcome = _collect(data, carry_over, exchange, rows, texts, lists, found)
        if outcome == OUT_OF_ROOM:
            break  # the exchange is read again, with more room
        state[exchange] = EXTRACTED if outcome == 0 else NEEDS_CODEC
        exchange += 1
    counters.exchange = exchange
    remaining: int = len(state) - exchange
    return remaining
