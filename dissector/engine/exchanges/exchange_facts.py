"""
Summarises the exchanges of a whole window: client ids, errors, topics, problems.

Most exchanges are complete, valid and of known APIs. A kernel (`read_facts`) extracts their fields
without decoding their bodies. The others are decoded one by one, as `Exchange`; the codecs find the
problems.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.exchanges.fact_columns import ExchangeSummaries
from dissector.engine.facts.fact_collector import CLIENT, ID, NAME
from dissector.engine.facts.fact_kernel import ERRORS, NEEDS_CODEC, TOPICS, VERSIONS
from dissector.engine.facts.fact_tables import (
    WindowFacts,
    distinct_kinds,
    extract_facts,
    message_kinds,
)
from dissector.engine.facts.interning import InternTable
from dissector.engine.facts.topic_table import (
    TopicIdName,
    TopicNames,
    name_defining_rows,
    resolve_in_order,
)
from dissector.engine.records.batch_validation import invalid_fields
from dissector.engine.tables.exchange_table import NONE, Exchanges
from dissector.protocol.context import current
from dissector.protocol.error_codes import error_name
from dissector.protocol.headers import API_VERSIONS
from dissector.protocol.messages import foreign_problem

MIN_BULK_EXCHANGES = 100
"""Minimum of exchanges in a window for compiling and running programs."""

BYTES_PER_EXCHANGE = 1024
"""So many bytes of messages count as one more exchange: few large ones hold as much work."""


class WindowSummary(NamedTuple):
    """Facts of a window by itself, without earlier windows: summaries and topic names."""

    summaries: ExchangeSummaries
    topic_names: list[TopicIdName]


def is_bulk_worthwhile(table: Exchanges) -> bool:
    """Return whether a window has enough exchanges, or large ones, for bulk extraction to pay."""
    captured = (frames.captured_bytes.clip(0) for frames in (table.request, table.response))
    weight = sum(int(each.sum()) for each in captured) // BYTES_PER_EXCHANGE
    return len(table) + weight >= MIN_BULK_EXCHANGES


def read_summaries(table: Exchanges, names: TopicNames) -> ExchangeSummaries:
    """Return the summaries of a window's exchanges."""
    return resolve_topics(summarise(table), names)


def summarise(table: Exchanges, *, checking: bool = True) -> WindowSummary:
    """Extract the summary of a window; `checking` looks for problems of records too."""
    return summarise_facts(table, extract_facts(table, records=checking))


def summarise_facts(table: Exchanges, facts: WindowFacts) -> WindowSummary:
    """Return the summary of a window from its facts, including the problems of records."""
    _mark_invalid_records(table, facts)
    summaries, topics = _summaries_of(facts)
    _add_foreign_notes(table, facts, summaries)
    topic_names = _topic_names_of(facts, topics) + _decode_remaining(table, facts, summaries)
    topic_names.sort(key=lambda topic_name: topic_name.row)
    return WindowSummary(summaries, topic_names)


def resolve_topics(summary: WindowSummary, names: TopicNames) -> ExchangeSummaries:
    """
    Return the summaries of a window, with topic ids resolved by earlier windows where needed.

    Args:
        summary: Of the window; in the order of windows.
        names: Learns the window's names of topic ids. Without reading ahead, ids are replaced by
            names here, if defined before each row.
    """
    summaries, topic_names = summary
    if not names.can_read_ahead:
        resolve_in_order(summaries.topics, summaries.topic_lists, topic_names, names)
    for topic_name in topic_names:
        names.learn({topic_name.topic_id: topic_name.name})
    return summaries


def read_topic_names(table: Exchanges) -> dict[UUID, str]:
    """Return the names of topic ids that the exchanges of a window define."""
    names: dict[UUID, str] = {}
    for topic_name in topic_definitions(table):
        names.setdefault(topic_name.topic_id, topic_name.name)
    return names


def topic_definitions(table: Exchanges) -> list[TopicIdName]:
    """Return the names of topic ids that the exchanges of a window define, by row."""
    rows = name_defining_rows(table.api_key, table.api_version)
    if not len(rows):
        return []
    chosen = table.rows(rows)
    facts = extract_facts(chosen, records=False)
    out, topics = _summaries_of(facts)
    found = _topic_names_of(facts, topics) + _decode_remaining(chosen, facts, out)
    found.sort(key=lambda topic_name: topic_name.row)
    return [each._replace(row=int(rows[each.row])) for each in found]


def _mark_invalid_records(table: Exchanges, facts: WindowFacts) -> None:
    """Mark exchanges with invalid records for decoding by the codecs."""
    fields = facts.fields
    start, length = (np.ascontiguousarray(fields[name]) for name in ("start", "length"))
    may_be_cut = fields["may_be_cut"].astype(np.bool_)
    invalid = invalid_fields(table.data, table.carry_over, start, length, may_be_cut)
    facts.state[fields["exchange"][invalid]] = NEEDS_CODEC


def _summaries_of(facts: WindowFacts) -> tuple[ExchangeSummaries, dict[int, str | UUID]]:
    """Return the kernel's facts as columns and lists, and the topics by their entries."""
    texts, lists = facts.texts, facts.lists
    client_rows, client_ids = texts.contents(CLIENT)
    error_rows, codes = lists.contents(ERRORS)
    topic_rows, entries = lists.contents(TOPICS)
    topic_of = _topics(texts)
    summaries = ExchangeSummaries(
        client_id=client_rows[facts.clients],
        errors=error_rows[facts.errors],
        topics=topic_rows[facts.topics],
        problems=np.zeros(len(facts.state), np.int64),
        client_ids=[None, *map(_text, client_ids)],
        error_lists=[(), *(tuple(map(error_name, each.tolist())) for each in codes)],
        topic_lists=[(), *(tuple(topic_of[n] for n in each.tolist()) for each in entries)],
        problem_lists=[()],
    )
    return summaries, topic_of


def _topics(texts: InternTable) -> dict[int, str | UUID]:
    """Return names and ids of topics by their entries."""
    topics: dict[int, str | UUID] = {}
    for kind, read in ((NAME, _text), (ID, _uuid)):
        numbers, contents = texts.contents(kind)
        entries = (np.flatnonzero(numbers) - 1).tolist()
        topics.update(zip(entries, map(read, contents), strict=True))
    return topics


def _text(content: NDArray[np.uint8]) -> str:
    return content.tobytes().decode("utf-8", "surrogateescape")


def _uuid(content: NDArray[np.uint8]) -> UUID:
    return UUID(bytes=content.tobytes())


def _add_foreign_notes(table: Exchanges, facts: WindowFacts, summaries: ExchangeSummaries) -> None:
    """Add a note to messages that were read by a foreign definition instead of a built-in one."""
    if current() is None:
        return
    kinds = message_kinds(table)
    is_extracted = facts.state != NEEDS_CODEC
    has_frame = [frames.start != NONE for frames in (table.request, table.response)]
    for kind in distinct_kinds(kinds):
        key, version = divmod(kind, VERSIONS)
        notes = foreign_problem("request", key, version), foreign_problem("response", key, version)
        if notes == (None, None):
            continue
        if key == API_VERSIONS:
            # Its response may be in v0.
            facts.state[kinds == kind] = NEEDS_CODEC
            continue
        for present in ((True, False), (False, True), (True, True)):
            rows = (
                is_extracted
                & (kinds == kind)
                & (has_frame[0] == present[0])
                & (has_frame[1] == present[1])
            )
            present_notes = [
                note for note, is_there in zip(notes, present, strict=True) if note and is_there
            ]
            summaries.problems[rows] = _ValueIndex(summaries.problem_lists).index_of(
                tuple(present_notes)
            )


def _topic_names_of(facts: WindowFacts, topics: Mapping[int, Any]) -> list[TopicIdName]:
    """Return the kernel's topic names, of exchanges that the codecs need not decode."""
    rows = facts.topic_names[facts.state[facts.topic_names["exchange"]] != NEEDS_CODEC]
    return [
        TopicIdName(row, topics[topic_id], topics[name]) for row, topic_id, name in rows.tolist()
    ]


def _decode_remaining(
    table: Exchanges, facts: WindowFacts, summaries: ExchangeSummaries
) -> list[TopicIdName]:
    """Decode the exchanges that the kernel left out, and fill in their rows."""
    topic_names: list[TopicIdName] = []
    client_ids, error_lists = _ValueIndex(summaries.client_ids), _ValueIndex(summaries.error_lists)
    topic_lists, problem_lists = (
        _ValueIndex(summaries.topic_lists),
        _ValueIndex(summaries.problem_lists),
    )
    for row in np.flatnonzero(facts.state == NEEDS_CODEC).tolist():
        exchange = Exchange(table, row, capture="", client="", broker="", names=TopicNames())
        request, response = exchange.facts
        summaries.client_id[row] = client_ids.index_of(exchange.client_id)
        summaries.errors[row] = error_lists.index_of(tuple(response.errors))
        summaries.topics[row] = topic_lists.index_of(tuple(request.topics | response.topics))
        summaries.problems[row] = problem_lists.index_of(tuple(exchange.problems))
        names = response.names | request.names
        topic_names += [TopicIdName(row, topic_id, name) for topic_id, name in names.items()]
    return topic_names


_Value = TypeVar("_Value", bound=Hashable)


class _ValueIndex(Generic[_Value]):
    """Indices of the values of a growing list."""

    def __init__(self, values: list[_Value]) -> None:
        self._values = values
        self._numbers = {value: number for number, value in enumerate(values)}

    def index_of(self, value: _Value) -> int:
        """Return the index of a value."""
        index = self._numbers.get(value)
        if index is None:
            index = self._numbers[value] = len(self._values)
            self._values.append(value)
        return index
