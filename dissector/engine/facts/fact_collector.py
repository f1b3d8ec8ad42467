"""What the notes of an exchange say: the entries of its client id, errors and topics, and names."""

from __future__ import annotations

from typing import Any

from dissector.engine.facts.fact_interpreter import FALLBACK, OUT_OF_ROOM
from dissector.engine.facts.interning import LAST, SEEN, TOO_MANY_COLLISIONS, intern, key_of_bytes
from dissector.kernel import device_function
from dissector.protocol.fact_program import CLIENT_ID, RECORDS, RECORDS_CUT
from dissector.protocol.facts import ERROR, PAIR_ID, PAIR_NAME, TOPIC_ID

CLIENT, NAME, ID = range(3)
"""Kinds of texts."""

NOTED, CLIENT_NOW, ERRORS_NOW, TOPICS_NOW, TOLD, FIELDS, ATTEMPT, ROW, SHORT = range(9)
"""
The numbers of a run. Of the exchange that is read: how many notes it has; the entry + 1 of its
client id; how many errors and topics. Of all: how many rows of `told` and `fields` there are; how
many exchanges were begun, also in vain; the next one; what there was too little room for.
"""
COUNTS = 9

NOTES_SHORT, TEXTS_SHORT, LISTS_SHORT, TOLD_SHORT, FIELDS_SHORT = range(5)


@device_function
def intern_text(
    data: Any,
    held: Any,
    place: int,
    length: int,
    role: int,
    slots: Any,
    texts: Any,
    pool: Any,
    used: Any,
) -> int:
    """Return the entry of a text or an id; CROWDED where none is to be had."""
    src = data
    if place >= len(data):
        src = held
        place -= len(data)
    kind = NAME
    if role == CLIENT_ID:
        kind = CLIENT
    elif role in (TOPIC_ID, PAIR_ID):
        kind = ID
    key = key_of_bytes(src, place, length, kind)
    return intern(src, place, length, kind, key, slots, texts, pool, used)


@device_function
def is_zero_id(data: Any, held: Any, place: int) -> bool:
    """Tell whether an id is the one that stands for none."""
    src = data
    if place >= len(data):
        src = held
        place -= len(data)
    some = 0
    for i in range(place, place + 16):
        some |= src[i]
    return some == 0


@device_function
def collect_facts(
    data: Any,
    held: Any,
    row: int,
    notes: Any,
    slots: Any,
    texts: Any,
    pool: Any,
    used: Any,
    seen: Any,
    errors: Any,
    topics: Any,
    told: Any,
    fields: Any,
    counts: Any,
) -> int:
    """
    Gather what the notes of an exchange say: distinct errors and topics, in their order.

    Returns:
        0; LEAVE or OUT_OF_ROOM.
    """
    attempt = counts[ATTEMPT]
    rows_told, rows_fields = counts[TOLD], counts[FIELDS]
    client = 0
    error_count = 0
    topic_count = 0
    halves = 0
    other = TOO_MANY_COLLISIONS
    for i in range(counts[NOTED]):
        role, place, length = notes[i, 0], notes[i, 1], notes[i, 2]
        if role == ERROR:
            if seen[length & 0xFFFF] != attempt:
                seen[length & 0xFFFF] = attempt
                errors[error_count] = length
                error_count += 1
            continue
        if role >= RECORDS:
            if length > 0 and len(fields):
                if rows_fields >= len(fields):
                    counts[SHORT] = FIELDS_SHORT
                    return OUT_OF_ROOM
                fields[rows_fields, 0] = row
                fields[rows_fields, 1] = place
                fields[rows_fields, 2] = length
                fields[rows_fields, 3] = 1 if role == RECORDS_CUT else 0
                rows_fields += 1
            continue
        there = length > 0 or (role == CLIENT_ID and length == 0)
        if role in (TOPIC_ID, PAIR_ID):
            there = not is_zero_id(data, held, place)
        number = TOO_MANY_COLLISIONS
        if there:
            number = intern_text(data, held, place, length, role, slots, texts, pool, used)
            if number < 0:
                counts[SHORT] = TEXTS_SHORT
                return FALLBACK if number == TOO_MANY_COLLISIONS else OUT_OF_ROOM
        if role == CLIENT_ID:
            client = number + 1 if there else 0
            continue
        if role in (PAIR_NAME, PAIR_ID):
            halves += 1
            if halves == 1:
                other = number
                continue
            halves = 0
            name = number if role == PAIR_NAME else other
            topic_id = other if role == PAIR_NAME else number
            number = name if name >= 0 else topic_id
            if name >= 0 and topic_id >= 0:
                if rows_told >= len(told):
                    counts[SHORT] = TOLD_SHORT
                    return OUT_OF_ROOM
                told[rows_told, 0] = row
                told[rows_told, 1] = topic_id
                told[rows_told, 2] = name
                rows_told += 1
        if number >= 0 and texts[number, SEEN] != attempt:
            texts[number, SEEN] = attempt
            topics[topic_count] = number
            topic_count += 1
    counts[CLIENT_NOW] = client
    counts[ERRORS_NOW] = error_count
    counts[TOPICS_NOW] = topic_count
    counts[TOLD] = rows_told
    counts[FIELDS] = rows_fields
    return 0


@device_function
def drop_repeated_names(told: Any, first: int, texts: Any, counts: Any) -> None:
    """Drop from what an exchange told of names all that was told before."""
    kept = first
    for i in range(first, counts[TOLD]):
        topic_id, name = told[i, 1], told[i, 2]
        if texts[topic_id, LAST] != name:
            texts[topic_id, LAST] = name
            told[kept, 0] = told[i, 0]
            told[kept, 1] = topic_id
            told[kept, 2] = name
            kept += 1
    counts[TOLD] = kept
