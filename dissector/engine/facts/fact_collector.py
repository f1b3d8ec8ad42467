"""Collects the facts of an exchange: client id, errors, topics, and names of topic ids."""

from __future__ import annotations

from dissector.engine.facts.fact_arrays import (
    ATTEMPT,
    CLIENT_ENTRY,
    ERROR_COUNT,
    FALLBACK,
    FIELD_COUNT,
    NAME_COUNT,
    OUT_OF_ROOM,
    ROW_COUNT,
    SHORT_OF,
    SHORT_OF_FIELDS,
    SHORT_OF_NAMES,
    SHORT_OF_TEXTS,
    TOPIC_COUNT,
    FactArrays,
)
from dissector.engine.facts.interning import (
    LAST,
    SEEN,
    TOO_MANY_COLLISIONS,
    InternIndex,
    hash_bytes,
    intern,
)
from dissector.engine.tape.tape_arrays import TapeRows
from dissector.kernel import device_function
from dissector.kernel.arrays import U8, I64Table
from dissector.protocol.fact_program import CLIENT_ID, RECORDS, RECORDS_CUT
from dissector.protocol.facts import ERROR, PAIR_ID, PAIR_NAME, TOPIC_ID

CLIENT, NAME, ID = range(3)
"""Kinds of texts."""


@device_function
def intern_text(
    data: U8,
    carry_over: U8,
    start: int,
    length: int,
    role: int,
    texts: InternIndex,
    pool: U8,
) -> int:
    """Return the entry of a text or an id; TOO_MANY_COLLISIONS or FULL without one."""
    src = data
    if start >= len(data):
        src = carry_over
        start -= len(data)
    kind = NAME
    if role == CLIENT_ID:
        kind = CLIENT
    elif role in (TOPIC_ID, PAIR_ID):
        kind = ID
    key = hash_bytes(src, start, length, kind)
    return intern(src, start, length, kind, key, texts, pool)


@device_function
def is_zero_id(data: U8, carry_over: U8, start: int) -> bool:
    """Return whether an id is zero, which stands for none."""
    src = data
    if start >= len(data):
        src = carry_over
        start -= len(data)
    some = 0
    for i in range(start, start + 16):
        some |= src[i]
    return some == 0


@device_function
def collect_facts(
    data: U8,
    carry_over: U8,
    exchange: int,
    rows: TapeRows,
    texts: InternIndex,
    found: FactArrays,
) -> int:
    """
    Collect distinct errors and topics, in order, and names of topic ids from an exchange's rows.

    Returns:
        0; FALLBACK or OUT_OF_ROOM.
    """
    counters, topic_names, fields = found.counters, found.topic_names, found.fields
    seen = found.seen
    attempt = counters[ATTEMPT]
    name_rows, field_rows = counters[NAME_COUNT], counters[FIELD_COUNT]
    client = 0
    error_count = 0
    topic_count = 0
    pair_parts = 0
    first_part = TOO_MANY_COLLISIONS
    for i in range(counters[ROW_COUNT]):
        role, start, length = rows.field[i], rows.start[i], rows.value[i]
        if role == ERROR:
            if length and seen[length & 0xFFFF] != attempt:
                seen[length & 0xFFFF] = attempt
                found.current_errors[error_count] = length
                error_count += 1
            continue
        if role >= RECORDS:
            if length > 0 and len(fields):
                if field_rows >= len(fields):
                    counters[SHORT_OF] = SHORT_OF_FIELDS
                    return OUT_OF_ROOM
                fields[field_rows, 0] = exchange
                fields[field_rows, 1] = start
                fields[field_rows, 2] = length
                fields[field_rows, 3] = 1 if role == RECORDS_CUT else 0
                field_rows += 1
            continue
        has_content = length > 0 or (role == CLIENT_ID and length == 0)
        if role in (TOPIC_ID, PAIR_ID):
            has_content = not is_zero_id(data, carry_over, start)
        entry = TOO_MANY_COLLISIONS
        if has_content:
            entry = intern_text(data, carry_over, start, length, role, texts, found.text_pool)
            if entry < 0:
                counters[SHORT_OF] = SHORT_OF_TEXTS
                return FALLBACK if entry == TOO_MANY_COLLISIONS else OUT_OF_ROOM
        if role == CLIENT_ID:
            client = entry + 1 if has_content else 0
            continue
        if role in (PAIR_NAME, PAIR_ID):
            pair_parts += 1
            if pair_parts == 1:
                first_part = entry
                continue
            pair_parts = 0
            name = entry if role == PAIR_NAME else first_part
            topic_id = first_part if role == PAIR_NAME else entry
            entry = name if name >= 0 else topic_id
            if name >= 0 and topic_id >= 0:
                if name_rows >= len(topic_names):
                    counters[SHORT_OF] = SHORT_OF_NAMES
                    return OUT_OF_ROOM
                topic_names[name_rows, 0] = exchange
                topic_names[name_rows, 1] = topic_id
                topic_names[name_rows, 2] = name
                name_rows += 1
        if entry >= 0 and texts.entries[entry, SEEN] != attempt:
            texts.entries[entry, SEEN] = attempt
            found.current_topics[topic_count] = entry
            topic_count += 1
    counters[CLIENT_ENTRY] = client
    counters[ERROR_COUNT] = error_count
    counters[TOPIC_COUNT] = topic_count
    counters[NAME_COUNT] = name_rows
    counters[FIELD_COUNT] = field_rows
    return 0


@device_function
def drop_repeated_names(found: FactArrays, first: int, texts: I64Table) -> None:
    """Drop names of an exchange that repeat the last known name of their id."""
    topic_names, counters = found.topic_names, found.counters
    kept = first
    for i in range(first, counters[NAME_COUNT]):
        topic_id, name = topic_names[i, 1], topic_names[i, 2]
        if texts[topic_id, LAST] != name:
            texts[topic_id, LAST] = name
            topic_names[kept, 0] = topic_names[i, 0]
            topic_names[kept, 1] = topic_id
            topic_names[kept, 2] = name
            kept += 1
    counters[NAME_COUNT] = kept
