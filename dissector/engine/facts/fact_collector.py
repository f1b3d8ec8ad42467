"""Collects the facts of an exchange: client id, errors, topics, and names of topic ids."""

from __future__ import annotations

from dissector.engine.facts.fact_arrays import FALLBACK, OUT_OF_ROOM, FactArrays, ShortOf
from dissector.engine.facts.interning import (
    TOO_MANY_COLLISIONS,
    InternEntry,
    InternIndex,
    hash_bytes,
    intern,
)
from dissector.engine.tape.tape_arrays import TapeRows
from dissector.kernel import device_function
from dissector.kernel.arrays import U8
from dissector.kernel.named_rows import Rows
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
    attempt = counters.attempt
    name_rows, field_rows = counters.names, counters.fields
    client = 0
    error_count = 0
    topic_count = 0
    pair_parts = 0
    first_part = TOO_MANY_COLLISIONS
    for i in range(counters.rows):
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
                    counters.short_of = ShortOf.FIELDS
                    return OUT_OF_ROOM
                field = fields[field_rows]
                field.exchange = exchange
                field.start = start
                field.length = length
                field.may_be_cut = role == RECORDS_CUT
                field_rows += 1
            continue
        has_content = length > 0 or (role == CLIENT_ID and length == 0)
        if role in (TOPIC_ID, PAIR_ID):
            has_content = not is_zero_id(data, carry_over, start)
        entry = TOO_MANY_COLLISIONS
        if has_content:
            entry = intern_text(data, carry_over, start, length, role, texts, found.text_pool)
            if entry < 0:
                counters.short_of = ShortOf.TEXTS
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
                    counters.short_of = ShortOf.NAMES
                    return OUT_OF_ROOM
                new = topic_names[name_rows]
                new.exchange = exchange
                new.topic_id = topic_id
                new.name = name
                name_rows += 1
        if entry >= 0 and texts.entries[entry].seen != attempt:
            texts.entries[entry].seen = attempt
            found.current_topics[topic_count] = entry
            topic_count += 1
    counters.client = client
    counters.errors = error_count
    counters.topics = topic_count
    counters.names = name_rows
    counters.fields = field_rows
    return 0


@device_function
def drop_repeated_names(found: FactArrays, first: int, texts: Rows[InternEntry]) -> None:
    """Drop names of an exchange that repeat the last known name of their id."""
    topic_names, counters = found.topic_names, found.counters
    kept = first
    for i in range(first, counters.names):
        new, to = topic_names[i], topic_names[kept]
        known = texts[new.topic_id]
        if known.last_name != new.name:
            known.last_name = new.name
            to.exchange, to.topic_id, to.name = new.exchange, new.topic_id, new.name
            kept += 1
    counters.names = kept
