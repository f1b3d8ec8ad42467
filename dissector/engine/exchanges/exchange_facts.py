"""
What a table wants to know of the bodies of its exchanges, for a whole window at once.

Most exchanges are whole, of known APIs, and nothing is wrong with them. One loop reads what they
tell (`fact_loop`), without decoding their bodies. The others are asked one by one, as `Exchange`,
whose codecs know what is wrong.
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
"""Exchanges in a window from which it pays to read them all at once, by programs made for that."""


class WindowSummary(NamedTuple):
    """What the exchanges of a window tell by themselves, whatever was told before them."""

    summaries: ExchangeSummaries
    topic_names: list[TopicIdName]


def is_bulk_worthwhile(table: Exchanges) -> bool:
    """Tell whether a window has so many exchanges that reading them all at once pays."""
    return len(table) >= MIN_BULK_EXCHANGES


def read_summaries(table: Exchanges, names: TopicNames) -> ExchangeSummaries:
    """Return what is known of each exchange of a window."""
    return resolve_topics(summarise(table), names)


def summarise(table: Exchanges) -> WindowSummary:
    """Read what the exchanges of a window tell; several may be read side by side."""
    return summarise_facts(table, extract_facts(table))


def summarise_facts(table: Exchanges, facts: WindowFacts) -> WindowSummary:
    """Return what the exchanges of a window tell, their records included, by its facts."""
    _leave_wrong_records(table, facts)
    out, topics = _known(facts)
    _add_notes(table, facts, out)
    told = _told(facts, topics) + _ask(table, facts, out)
    told.sort(key=lambda each: each.row)
    return WindowSummary(out, told)


def resolve_topics(summary: WindowSummary, names: TopicNames) -> ExchangeSummaries:
    """
    Return what is known of each exchange of a window, and of topics from those before it.

    Args:
        summary: What the window tells; in the order of windows.
        names: Learns what is told of topics. Where no more can be told of what was before, ids get
            their names here, as far as each row's past tells them.
    """
    out, told = summary
    if not names.can_read_ahead:
        resolve_in_order(out.topics, out.topic_lists, told, names)
    for each in told:
        names.learn({each.topic_id: each.name})
    return out


def read_topic_names(table: Exchanges) -> dict[UUID, str]:
    """Return the names of topic ids that the exchanges of a window tell."""
    chosen = table.rows(name_defining_rows(table.api_key, table.api_version))
    facts = extract_facts(chosen, records=False)
    out, topics = _known(facts)
    told = _told(facts, topics) + _ask(chosen, facts, out)
    names: dict[UUID, str] = {}
    for each in sorted(told, key=lambda each: each.row):
        names.setdefault(each.topic_id, each.name)
    return names


def _leave_wrong_records(table: Exchanges, facts: WindowFacts) -> None:
    """Leave to the codecs the exchanges with records that something is wrong with."""
    rows, start, length, may_be_cut = np.ascontiguousarray(facts.fields.T)
    wrong = invalid_fields(table.data, table.carry_over, start, length, may_be_cut.astype(np.bool_))
    facts.state[rows[wrong]] = NEEDS_CODEC


def _known(facts: WindowFacts) -> tuple[ExchangeSummaries, dict[int, str | UUID]]:
    """Return what the loop found as columns and lists; and the topics by their entries."""
    texts, lists = facts.texts, facts.lists
    clients, client_ids = texts.contents(CLIENT)
    errors, codes = lists.contents(ERRORS)
    topics, entries = lists.contents(TOPICS)
    topic_of = _topics(texts)
    known = ExchangeSummaries(
        client_id=clients[facts.clients],
        errors=errors[facts.errors],
        topics=topics[facts.topics],
        problems=np.zeros(len(facts.state), np.int64),
        client_ids=[None, *map(_text, client_ids)],
        error_lists=[(), *(tuple(map(error_name, each.tolist())) for each in codes)],
        topic_lists=[(), *(tuple(topic_of[n] for n in each.tolist()) for each in entries)],
        problem_lists=[()],
    )
    return known, topic_of


def _topics(texts: InternTable) -> dict[int, str | UUID]:
    """Return names and ids of topics by their entries."""
    out: dict[int, str | UUID] = {}
    for kind, read in ((NAME, _text), (ID, _uuid)):
        numbers, contents = texts.contents(kind)
        entries = (np.flatnonzero(numbers) - 1).tolist()
        out.update(zip(entries, map(read, contents), strict=True))
    return out


def _text(content: NDArray[np.uint8]) -> str:
    return content.tobytes().decode("utf-8", "surrogateescape")


def _uuid(content: NDArray[np.uint8]) -> UUID:
    return UUID(bytes=content.tobytes())


def _add_notes(table: Exchanges, facts: WindowFacts, known: ExchangeSummaries) -> None:
    """Add what says that a definition over the built-in declarations read a message."""
    if current() is None:
        return
    kinds = message_kinds(table)
    read = facts.state != NEEDS_CODEC
    there = [frames.start != NONE for frames in (table.request, table.response)]
    for kind in distinct_kinds(kinds):
        key, version = divmod(kind, VERSIONS)
        notes = foreign_problem("request", key, version), foreign_problem("response", key, version)
        if notes == (None, None):
            continue
        if key == API_VERSIONS:
            # Its answer may be in v0.
            facts.state[kinds == kind] = NEEDS_CODEC
            continue
        for both in ((True, False), (False, True), (True, True)):
            rows = read & (kinds == kind) & (there[0] == both[0]) & (there[1] == both[1])
            said = [note for note, is_there in zip(notes, both, strict=True) if note and is_there]
            known.problems[rows] = _Numbers(known.problem_lists).number(tuple(said))


def _told(facts: WindowFacts, topics: Mapping[int, Any]) -> list[TopicIdName]:
    """Return the names that the loop found, of exchanges that are not left to the codecs."""
    told = facts.topic_names[facts.state[facts.topic_names[:, 0]] != NEEDS_CODEC]
    return [
        TopicIdName(row, topics[topic_id], topics[name]) for row, topic_id, name, _ in told.tolist()
    ]


def _ask(table: Exchanges, facts: WindowFacts, known: ExchangeSummaries) -> list[TopicIdName]:
    """Fill in what the codecs know of the exchanges that are left to them."""
    told: list[TopicIdName] = []
    client_ids, error_lists = _Numbers(known.client_ids), _Numbers(known.error_lists)
    topic_lists, problem_lists = _Numbers(known.topic_lists), _Numbers(known.problem_lists)
    for row in np.flatnonzero(facts.state == NEEDS_CODEC).tolist():
        exchange = Exchange(table, row, capture="", client="", broker="", names=TopicNames())
        request, response = exchange.facts
        known.client_id[row] = client_ids.number(exchange.client_id)
        known.errors[row] = error_lists.number(tuple(response.errors))
        known.topics[row] = topic_lists.number(tuple(request.topics | response.topics))
        known.problems[row] = problem_lists.number(tuple(exchange.problems))
        names = response.names | request.names
        told += [TopicIdName(row, topic_id, name) for topic_id, name in names.items()]
    return told


_Value = TypeVar("_Value", bound=Hashable)


class _Numbers(Generic[_Value]):
    """Numbers for the values of a list, which grows by those that are new."""

    def __init__(self, values: list[_Value]) -> None:
        self._values = values
        self._numbers = {value: number for number, value in enumerate(values)}

    def number(self, value: _Value) -> int:
        """Return the index of a value."""
        found = self._numbers.get(value)
        if found is None:
            found = self._numbers[value] = len(self._values)
            self._values.append(value)
        return found
