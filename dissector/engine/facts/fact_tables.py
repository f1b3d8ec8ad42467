"""The arrays that the fact kernel fills, and how they grow."""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.facts.fact_arrays import (
    ExchangeArrays,
    FactArrays,
    FactCounters,
    FieldRow,
    FirstSteps,
    NameRow,
    ShortOf,
)
from dissector.engine.facts.fact_kernel import KEYS, VERSIONS, read_facts
from dissector.engine.facts.interning import InternTable
from dissector.engine.tables.exchange_table import Exchanges
from dissector.engine.tape.tape_arrays import ProgramArrays, new_rows, program_arrays
from dissector.kernel.named_rows import RowArray, dtype_of, rows_of
from dissector.protocol.fact_program import ROLES, FactProgramTable, fact_programs
from dissector.protocol.facts import NO_FACT
from dissector.protocol.headers import API_VERSIONS

Ints: TypeAlias = NDArray[np.int64]

ERROR_CODES = 1 << 16


@dataclass(slots=True, eq=False, repr=False)
class WindowFacts:
    """
    The facts that the kernel extracted from a window.

    Attributes:
        state: Of each exchange: NEEDS_CODEC or EXTRACTED.
        clients: Entry + 1 of its client id, 0 for none.
        errors: Entry + 1 of the list of its errors, 0 for none.
        topics: Entry + 1 of the list of its topics, 0 for none.
        texts: Client ids, names and ids of topics.
        lists: Lists of error codes and of entries of topics.
        topic_names: The new names of topic ids, `NameRow`.
        fields: The `records` fields, `FieldRow`.
    """

    state: NDArray[np.uint8]
    clients: Ints
    errors: Ints
    topics: Ints
    texts: InternTable = field(default_factory=lambda: InternTable.of(np.uint8))
    lists: InternTable = field(default_factory=lambda: InternTable.of(np.int64))
    topic_names: RowArray = field(default_factory=lambda: np.zeros(256, dtype_of(NameRow)))
    fields: RowArray = field(default_factory=lambda: np.zeros(4096, dtype_of(FieldRow)))


def extract_facts(table: Exchanges, *, records: bool = True) -> WindowFacts:
    """Run the kernel over a window; `records` requests locations of records."""
    count = len(table)
    clients, errors, topics = (np.zeros(count, np.int64) for _ in range(3))
    facts = WindowFacts(np.zeros(count, np.uint8), clients, errors, topics)
    if not records:
        facts.fields = facts.fields[:0]
    exchanges, program = _exchange_arrays(table)
    rows, counters = new_rows(1024), np.zeros((), dtype_of(FactCounters))
    seen, current_errors = np.zeros(ERROR_CODES, np.int64), np.zeros(ERROR_CODES, np.int64)
    current_topics = np.zeros(1024, np.int64)
    while True:
        arrays = (
            *(facts.texts.pool, facts.lists.pool, facts.topic_names, facts.fields, facts.state),
            *(facts.clients, facts.errors, facts.topics),
            *(seen, current_errors, current_topics, counters),
        )
        indexes = facts.texts.index, facts.lists.index
        found = FactArrays._make(arrays)
        if not read_facts(table.data, table.carry_over, exchanges, program, rows, *indexes, found):
            break
        match int(counters["short_of"]):
            case ShortOf.TEXTS:
                facts.texts.grow()
            case ShortOf.LISTS:
                facts.lists.grow()
            case ShortOf.ROWS:
                rows = new_rows(2 * len(current_topics))
                current_topics = np.zeros(2 * len(current_topics), np.int64)
            case ShortOf.NAMES:
                facts.topic_names = np.concatenate((facts.topic_names, facts.topic_names))
            case _:
                facts.fields = np.concatenate((facts.fields, facts.fields))
    facts.topic_names = facts.topic_names[: int(counters["names"])]
    facts.fields = facts.fields[: int(counters["fields"])]
    return facts


def message_kinds(table: Exchanges) -> Ints:
    """Return `key * VERSIONS + version` of each request; -1 for none, or beyond all known ones."""
    keys, versions = table.api_key, table.api_version
    is_known = (keys >= 0) & (keys < KEYS) & (versions >= 0) & (versions < VERSIONS)
    return np.where(is_known, keys * VERSIONS + versions, -1)


def distinct_kinds(kinds: Ints) -> list[int]:
    """Return the distinct kinds of a window."""
    distinct: list[int] = np.flatnonzero(np.bincount(kinds + 1)[1:]).tolist()
    return distinct


def _exchange_arrays(table: Exchanges) -> tuple[ExchangeArrays, ProgramArrays]:
    """Return a window's exchanges, and the programs of their messages."""
    programs = fact_programs()
    is_wanted = np.arange(ROLES) != NO_FACT
    with _programs_lock:
        first_steps = _first_steps(table, programs)
        program = program_arrays(programs, is_wanted)
    request, response = table.request, table.response
    columns = (
        *(table.token, table.answers_acks_0, table.api_key, table.api_version),
        *(request.start, request.captured_bytes, request.size),
        *(response.start, response.captured_bytes, response.size),
        first_steps,
    )
    return ExchangeArrays._make(columns), program


_programs_lock = Lock()
"""Windows are read in parallel, and share the tables of programs."""


def _first_steps(table: Exchanges, programs: FactProgramTable) -> RowArray:
    """Return the first instructions of messages by kind."""
    starts = np.full(KEYS * VERSIONS, -1, dtype_of(FirstSteps))
    rows = rows_of(starts, FirstSteps)
    for kind in distinct_kinds(message_kinds(table)):
        key, version = divmod(kind, VERSIONS)
        rows[kind].request = programs.start(key, version, "request")
        rows[kind].response = programs.start(key, version, "response")
        if key == API_VERSIONS:
            rows[kind].refusal = programs.start(key, 0, "response")
    return starts
