"""
The loop that reads the facts of exchanges: client id, errors, topics, and names of topic ids.

It runs the programs of `dissector.protocol.fact_program` over request and response. What it can't
vouch for to the last byte it leaves to the codecs, which know what is wrong.
"""

from __future__ import annotations

from typing import Any

from dissector.engine.facts.fact_collector import (
    ATTEMPT,
    CLIENT_NOW,
    ERRORS_NOW,
    FIELDS,
    LISTS_SHORT,
    NOTED,
    NOTES_SHORT,
    ROW,
    SHORT,
    TOLD,
    TOPICS_NOW,
    collect_facts,
    drop_repeated_names,
)
from dissector.engine.facts.fact_interpreter import FALLBACK, OUT_OF_ROOM, extract_message
from dissector.engine.facts.interning import FULL, intern, key_of_numbers
from dissector.engine.tables.exchange_table import NONE
from dissector.kernel import Kernel, device_function
from dissector.protocol.headers import API_VERSIONS
from dissector.protocol.messages import UNSUPPORTED_VERSION

KEYS, VERSIONS = 1024, 64
"""More than there are keys and versions of APIs."""

ERRORS, TOPICS = range(2)
"""Kinds of lists: of error codes, and of entries of texts."""

NEEDS_CODEC, EXTRACTED = range(2)
"""What became of an exchange: it is left to the codecs; all is known."""


@device_function
def _list(content: Any, count: int, kind: int, slots: Any, lists: Any, pool: Any, used: Any) -> int:
    """Return the entry + 1 of a list, 0 of the empty one; CROWDED and FULL as they are."""
    if count == 0:
        return 0
    key = key_of_numbers(content, count, kind)
    number = intern(content, 0, count, kind, key, slots, lists, pool, used)
    return number if number < 0 else number + 1


@device_function
def _is_refusal(data: Any, held: Any, start: int, size: int) -> bool:
    """Tell whether an answer to ApiVersions says UNSUPPORTED_VERSION: it is in v0 (KIP-511)."""
    if size < 6:
        return False
    if start < len(data):
        return bool(data[start + 4] == 0 and data[start + 5] == UNSUPPORTED_VERSION)
    start -= len(data)
    return bool(held[start + 4] == 0 and held[start + 5] == UNSUPPORTED_VERSION)


@device_function
def _note(
    data: Any,
    held: Any,
    start: int,
    size: int,
    step: int,
    code: Any,
    tags: Any,
    stack: Any,
    notes: Any,
    count: int,
) -> int:
    """Take notes of one message, in `data` or, beyond its end, in `held`."""
    if step < 0:
        return FALLBACK
    src = data
    base = 0
    if start >= len(data):
        src = held
        base = len(data)
    at = start - base
    return extract_message(src, base, at, at + size, step, code, tags, stack, notes, count)


@Kernel
def read_facts(
    data: Any,
    held: Any,
    token: Any,
    unasked: Any,
    api_key: Any,
    api_version: Any,
    request_start: Any,
    request_there: Any,
    request_size: Any,
    response_start: Any,
    response_there: Any,
    response_size: Any,
    starts: Any,
    code: Any,
    tags: Any,
    stack: Any,
    notes: Any,
    text_slots: Any,
    texts: Any,
    text_pool: Any,
    texts_used: Any,
    list_slots: Any,
    lists: Any,
    list_pool: Any,
    lists_used: Any,
    seen: Any,
    errors_now: Any,
    topics_now: Any,
    told: Any,
    fields: Any,
    counts: Any,
    state: Any,
    clients: Any,
    errors: Any,
    topics: Any,
) -> int:
    """
    Read exchanges from `counts[ROW]` on.

    Returns:
        How many are left when something is full: `counts[SHORT]` says what.
    """
    row = counts[ROW]
    while row < len(state):
        count = FALLBACK
        if token[row]:
            count = 0
        elif request_start[row] == NONE:
            # Of an orphan only the correlation id is read.
            if response_there[row] >= 4 and not unasked[row]:
                count = 0
        elif request_there[row] == request_size[row] and not unasked[row]:
            key, version = api_key[row], api_version[row]
            kind = key * VERSIONS + version
            if 0 <= key < KEYS and 0 <= version < VERSIONS:
                start, size = request_start[row], request_size[row]
                step = starts[kind, 0]
                count = _note(data, held, start, size, step, code, tags, stack, notes, 0)
            start, size = response_start[row], response_size[row]
            if count >= 0 and start != NONE:
                step = starts[kind, 1]
                if response_there[row] != size:
                    step = -1
                elif key == API_VERSIONS and _is_refusal(data, held, start, size):
                    step = starts[kind, 2]
                count = _note(data, held, start, size, step, code, tags, stack, notes, count)
        outcome = 0 if count >= 0 else count
        if count == OUT_OF_ROOM:
            counts[SHORT] = NOTES_SHORT
        told_before, fields_before = counts[TOLD], counts[FIELDS]
        error_list = 0
        topic_list = 0
        if count > 0:
            counts[ATTEMPT] += 1
            counts[NOTED] = count
            outcome = collect_facts(
                data,
                held,
                row,
                notes,
                text_slots,
                texts,
                text_pool,
                texts_used,
                seen,
                errors_now,
                topics_now,
                told,
                fields,
                counts,
            )
        if count > 0 and outcome == 0:
            error_list = _list(
                errors_now, counts[ERRORS_NOW], ERRORS, list_slots, lists, list_pool, lists_used
            )
            topic_list = _list(
                topics_now, counts[TOPICS_NOW], TOPICS, list_slots, lists, list_pool, lists_used
            )
            if error_list == FULL or topic_list == FULL:
                counts[SHORT] = LISTS_SHORT
                outcome = OUT_OF_ROOM
            elif error_list < 0 or topic_list < 0:
                outcome = FALLBACK
            if outcome == 0:
                clients[row] = counts[CLIENT_NOW]
                errors[row] = error_list
                topics[row] = topic_list
                drop_repeated_names(told, told_before, texts, counts)
            else:
                counts[TOLD], counts[FIELDS] = told_before, fields_before
        if outcome == OUT_OF_ROOM:
            break  # it is read again from its beginning, with more room
        state[row] = EXTRACTED if outcome == 0 else NEEDS_CODEC
        row += 1
    counts[ROW] = row
    left: int = len(state) - row
    return left
