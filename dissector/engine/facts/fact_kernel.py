"""
The kernel that reads the facts of exchanges: client id, errors, topics, and names of topic ids.

It runs the programs of `dissector.protocol.fact_program` over request and response. A message that
does not match its program to the last byte is left to the codecs, which know what is wrong.
"""

from __future__ import annotations

from dissector.engine.facts.fact_collector import (
    ATTEMPT,
    CLIENT_ENTRY,
    ERROR_COUNT,
    FIELD_COUNT,
    NAME_COUNT,
    NOTE_COUNT,
    ROW,
    SHORT_OF,
    SHORT_OF_LISTS,
    SHORT_OF_NOTES,
    TOPIC_COUNT,
    collect_facts,
    drop_repeated_names,
)
from dissector.engine.facts.fact_interpreter import FALLBACK, OUT_OF_ROOM, extract_message
from dissector.engine.facts.interning import FULL, hash_integers, intern
from dissector.engine.tables.exchange_table import NONE
from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I64, U8, I64Table
from dissector.protocol.headers import API_VERSIONS
from dissector.protocol.messages import UNSUPPORTED_VERSION

KEYS, VERSIONS = 1024, 64
"""More than there are keys and versions of APIs."""

ERRORS, TOPICS = range(2)
"""Kinds of lists: of error codes, and of entries of texts."""

NEEDS_CODEC, EXTRACTED = range(2)
"""State of an exchange: the codecs have to read it; all its facts are extracted."""


@device_function
def _intern_list(
    content: I64, count: int, kind: int, slots: I64, lists: I64Table, pool: I64, usage: I64
) -> int:
    """Return the entry + 1 of a list, 0 for the empty one; or TOO_MANY_COLLISIONS or FULL."""
    if count == 0:
        return 0
    key = hash_integers(content, count, kind)
    entry = intern(content, 0, count, kind, key, slots, lists, pool, usage)
    return entry if entry < 0 else entry + 1


@device_function
def _is_unsupported_version(data: U8, carry_over: U8, start: int, size: int) -> bool:
    """Return whether an ApiVersions response says UNSUPPORTED_VERSION: it is in v0 (KIP-511)."""
    if size < 6:
        return False
    if start < len(data):
        return bool(data[start + 4] == 0 and data[start + 5] == UNSUPPORTED_VERSION)
    start -= len(data)
    return bool(carry_over[start + 4] == 0 and carry_over[start + 5] == UNSUPPORTED_VERSION)


@device_function
def _extract(
    data: U8,
    carry_over: U8,
    start: int,
    size: int,
    step: int,
    code: I64Table,
    tags: I64Table,
    stack: I64Table,
    notes: I64Table,
    count: int,
) -> int:
    """Extract the notes of one message, in `data` or, beyond its end, in `carry_over`."""
    if step < 0:
        return FALLBACK
    src = data
    base = 0
    if start >= len(data):
        src = carry_over
        base = len(data)
    at = start - base
    return extract_message(src, base, at, at + size, step, code, tags, stack, notes, count)


@Kernel
def read_facts(
    data: U8,
    carry_over: U8,
    token: U8,
    answers_acks_0: U8,
    api_key: I64,
    api_version: I64,
    request_start: I64,
    request_captured: I64,
    request_size: I64,
    response_start: I64,
    response_captured: I64,
    response_size: I64,
    starts: I64Table,
    code: I64Table,
    tags: I64Table,
    stack: I64Table,
    notes: I64Table,
    text_slots: I64,
    texts: I64Table,
    text_pool: U8,
    texts_usage: I64,
    list_slots: I64,
    lists: I64Table,
    list_pool: I64,
    lists_usage: I64,
    seen: I64,
    current_errors: I64,
    current_topics: I64,
    topic_names: I64Table,
    fields: I64Table,
    counters: I64,
    state: U8,
    clients: I64,
    errors: I64,
    topics: I64,
) -> int:
    """
    Read exchanges from `counters[ROW]` on.

    Returns:
        How many remain when an array is full: `counters[SHORT_OF]` says which.
    """
    row = counters[ROW]
    while row < len(state):
        count = FALLBACK
        if token[row]:
            count = 0
        elif request_start[row] == NONE:
            # An orphan has no facts but its correlation id.
            if response_captured[row] >= 4 and not answers_acks_0[row]:
                count = 0
        elif request_captured[row] == request_size[row] and not answers_acks_0[row]:
            key, version = api_key[row], api_version[row]
            kind = key * VERSIONS + version
            if 0 <= key < KEYS and 0 <= version < VERSIONS:
                start, size = request_start[row], request_size[row]
                step = starts[kind, 0]
                count = _extract(data, carry_over, start, size, step, code, tags, stack, notes, 0)
            start, size = response_start[row], response_size[row]
            if count >= 0 and start != NONE:
                step = starts[kind, 1]
                if response_captured[row] != size:
                    step = -1
                elif key == API_VERSIONS and _is_unsupported_version(data, carry_over, start, size):
                    step = starts[kind, 2]
                count = _extract(
                    data, carry_over, start, size, step, code, tags, stack, notes, count
                )
        outcome = 0 if count >= 0 else count
        if count == OUT_OF_ROOM:
            counters[SHORT_OF] = SHORT_OF_NOTES
        names_before, fields_before = counters[NAME_COUNT], counters[FIELD_COUNT]
        error_list = 0
        topic_list = 0
        if count > 0:
            counters[ATTEMPT] += 1
            counters[NOTE_COUNT] = count
            outcome = collect_facts(
                data,
                carry_over,
                row,
                notes,
                text_slots,
                texts,
                text_pool,
                texts_usage,
                seen,
                current_errors,
                current_topics,
                topic_names,
                fields,
                counters,
            )
        if count > 0 and outcome == 0:
            error_list = _intern_list(
                current_errors,
                counters[ERROR_COUNT],
                ERRORS,
                list_slots,
                lists,
                list_pool,
                lists_usage,
            )
            topic_list = _intern_list(
                current_topics,
                counters[TOPIC_COUNT],
                TOPICS,
                list_slots,
                lists,
                list_pool,
                lists_usage,
            )
            if error_list == FULL or topic_list == FULL:
                counters[SHORT_OF] = SHORT_OF_LISTS
                outcome = OUT_OF_ROOM
            elif error_list < 0 or topic_list < 0:
                outcome = FALLBACK
            if outcome == 0:
                clients[row] = counters[CLIENT_ENTRY]
                errors[row] = error_list
                topics[row] = topic_list
                drop_repeated_names(topic_names, names_before, texts, counters)
            else:
                counters[NAME_COUNT], counters[FIELD_COUNT] = names_before, fields_before
        if outcome == OUT_OF_ROOM:
            break  # the exchange is read again, with more room
        state[row] = EXTRACTED if outcome == 0 else NEEDS_CODEC
        row += 1
    counters[ROW] = row
    remaining: int = len(state) - row
    return remaining
