"""The tables that the loop of facts fills, and how they come to be large enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.facts.fact_collector import (
    COUNTS,
    FIELDS,
    LISTS_SHORT,
    NOTES_SHORT,
    SHORT,
    TEXTS_SHORT,
    TOLD,
    TOLD_SHORT,
)
from dissector.engine.facts.fact_kernel import KEYS, VERSIONS, read_facts
from dissector.engine.facts.interning import InternTable
from dissector.engine.tables.column_types import with_capacity
from dissector.engine.tables.exchange_table import Exchanges
from dissector.engine.tape.tape import DEPTH
from dissector.protocol.context import per_schemas
from dissector.protocol.fact_program import FactProgramTable, fact_programs
from dissector.protocol.headers import API_VERSIONS

Ints: TypeAlias = NDArray[np.int64]

ERROR_CODES = 1 << 16


@dataclass(slots=True)
class WindowFacts:
    """
    What the loop found in a window.

    Attributes:
        state: Of each exchange: READ or LEFT.
        clients: Entry + 1 of its client id, 0 for none.
        errors: Entry + 1 of the list of its errors, 0 for none.
        topics: Entry + 1 of the list of its topics, 0 for none.
        texts: Client ids, names and ids of topics.
        lists: Lists of error codes and of entries of topics.
        topic_names: Rows (exchange, entry of a topic id, entry of its name, 0) where a name was
            told anew.
        fields: Rows (exchange, start, length, whether it may be cut) of the `records` fields.
    """

    state: NDArray[np.uint8]
    clients: Ints
    errors: Ints
    topics: Ints
    texts: InternTable = field(default_factory=lambda: InternTable.of(np.uint8))
    lists: InternTable = field(default_factory=lambda: InternTable.of(np.int64))
    topic_names: Ints = field(default_factory=lambda: np.zeros((256, 4), np.int64))
    fields: Ints = field(default_factory=lambda: np.zeros((4096, 4), np.int64))


def extract_facts(table: Exchanges, *, records: bool = True) -> WindowFacts:
    """Run the loop over a window; `records` tells whether the places of records are wanted."""
    count = len(table)
    clients, errors, topics = (np.zeros(count, np.int64) for _ in range(3))
    out = WindowFacts(np.zeros(count, np.uint8), clients, errors, topics)
    if not records:
        out.fields = out.fields[:0]
    starts, code, tags = _programs(table)
    notes = np.zeros((1024, 3), np.int64)
    counts = np.zeros(COUNTS, np.int64)
    stack = np.zeros((DEPTH, 3), np.int64)
    topics_now = np.zeros(len(notes), np.int64)
    seen, errors_now = np.zeros(ERROR_CODES, np.int64), np.zeros(ERROR_CODES, np.int64)
    request, response = table.request, table.response
    while read_facts(
        table.data,
        table.carry_over,
        table.token.view(np.uint8),
        table.answers_acks_0.view(np.uint8),
        table.api_key,
        table.api_version,
        request.start,
        request.captured_bytes,
        request.size,
        response.start,
        response.captured_bytes,
        response.size,
        starts,
        code,
        tags,
        stack,
        notes,
        out.texts.slots,
        out.texts.entries,
        out.texts.pool,
        out.texts.used,
        out.lists.slots,
        out.lists.entries,
        out.lists.pool,
        out.lists.used,
        seen,
        errors_now,
        topics_now,
        out.topic_names,
        out.fields,
        counts,
        out.state,
        out.clients,
        out.errors,
        out.topics,
        work=count * 50,
    ):
        match int(counts[SHORT]):
            case short if short == TEXTS_SHORT:
                out.texts.grow()
            case short if short == LISTS_SHORT:
                out.lists.grow()
            case short if short == NOTES_SHORT:
                notes = np.concatenate((notes, notes))
                topics_now = np.zeros(len(notes), np.int64)
            case short if short == TOLD_SHORT:
                out.topic_names = np.concatenate((out.topic_names, out.topic_names))
            case _:
                out.fields = np.concatenate((out.fields, out.fields))
    out.topic_names = out.topic_names[: int(counts[TOLD])]
    out.fields = out.fields[: int(counts[FIELDS])]
    return out


def message_kinds(table: Exchanges) -> Ints:
    """Return `key * VERSIONS + version` of each request; -1 for none, or beyond all known ones."""
    keys, versions = table.api_key, table.api_version
    fit = (keys >= 0) & (keys < KEYS) & (versions >= 0) & (versions < VERSIONS)
    return np.where(fit, keys * VERSIONS + versions, -1)


def distinct_kinds(kinds: Ints) -> list[int]:
    """Return the distinct kinds of a window."""
    seen: list[int] = np.flatnonzero(np.bincount(kinds + 1)[1:]).tolist()
    return seen


def _programs(table: Exchanges) -> tuple[Ints, Ints, Ints]:
    """Return the first steps of all messages, the steps, and the tags."""
    programs, steps, tags = _shared()
    with _growing:
        return _starts(table, programs), steps.of(programs.code), tags.of(programs.tags)


@per_schemas
def _shared() -> tuple[FactProgramTable, _Rows, _Rows]:
    """Return the programs, and their steps and tags as arrays."""
    return fact_programs(), _Rows(4), _Rows(2)


class _Rows:
    """A list that grows, as an array: what others were given of it stays as it is."""

    def __init__(self, width: int) -> None:
        self._rows: Ints = np.zeros((1, width), np.int64)
        self._count = 0

    def of(self, rows: Sequence[tuple[int, ...]]) -> Ints:
        """Return the rows, with room behind them."""
        if self._count < len(rows):
            self._rows = with_capacity(self._rows, len(rows))
            self._rows[self._count : len(rows)] = rows[self._count :]
            self._count = len(rows)
        return self._rows


_growing = Lock()
"""Windows may be read side by side, and their programs are in one table."""


def _starts(table: Exchanges, programs: FactProgramTable) -> Ints:
    """
    Return the first steps of the messages that there are, by kind: request, response, refusal.

    The last is what a broker answers to a version of ApiVersions that it does not know.
    """
    out = np.full((KEYS * VERSIONS, 3), -1, np.int64)
    for kind in distinct_kinds(message_kinds(table)):
        key, version = divmod(kind, VERSIONS)
        out[kind, 0] = programs.start(key, version, "request")
        out[kind, 1] = programs.start(key, version, "response")
        if key == API_VERSIONS:
            out[kind, 2] = programs.start(key, 0, "response")
    return out
