"""The schemas that a capture itself has: of a registry's topic, and of exchanges with one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np

from dissector.engine.exchanges.exchange_records import record_rows
from dissector.engine.facts.topic_table import TopicNames
from dissector.engine.reading.capture import Capture, Window
from dissector.engine.tables.column_types import row_count
from dissector.engine.tables.exchange_table import Exchanges
from dissector.values.registry.http_exchanges import HttpExchanges
from dissector.values.registry.registry_answers import RegistryAnswers
from dissector.values.schemas.registry_entries import SCHEMAS_TOPIC, add_record
from dissector.values.schemas.schema_store import SchemaStore


def read_schemas(capture: Capture, store: SchemaStore) -> None:
    """Read a whole capture for its schemas, on all ports; its current pass goes on."""
    again = Capture(capture.paths, replace(capture.options, live=False, ports=frozenset()))
    again.make_source = capture.make_source
    exchanges = HttpExchanges(RegistryAnswers(store).see)
    again.tap, again.untapped = exchanges.feed, exchanges.left
    if not capture.options.ports:  # else its names are not those on all ports
        again.names = TopicNames(lambda: _all_names(capture.names))
    for window in again.windows(gleaning=True, checking=False):
        learn_schemas(again, window, store)
        del window  # frees its memory before the next window is read


def _all_names(names: TopicNames) -> dict[UUID, str]:
    names.read_ahead()
    return names.by_id


def learn_schemas(capture: Capture, window: Window, store: SchemaStore) -> None:
    """Add the schemas of a window of a capture, which is being read."""
    for value in _registry_values(capture, window):
        add_record(store, value)


def registry_exchanges(capture: Capture, window: Window) -> Exchanges:
    """Return the exchanges of a window with records of the registry's topic."""
    table = window.exchanges
    if not len(table):
        return table
    summaries, name = capture.known_of(window, checking=False), capture.names.name
    lists = enumerate(summaries.topic_lists)
    codes = [code for code, topics in lists if SCHEMAS_TOPIC in map(name, topics)]
    return table.rows(np.flatnonzero(np.isin(summaries.topics, codes)))


def _registry_values(capture: Capture, window: Window) -> Iterator[bytes | None]:
    """Yield the values of the records of the registry's topic, in order."""
    found = registry_exchanges(capture, window)
    if not len(found):
        return
    window = replace(window, exchanges=found)
    parts = capture.record_parts(window, lambda _: False, record_rows)
    for columns in parts:
        for row in range(row_count(columns)):
            if columns["topic"].value(row) == SCHEMAS_TOPIC:
                value: Any = columns["value"].value(row)
                yield value
