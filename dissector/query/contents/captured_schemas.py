"""The schemas that a capture itself has: of a registry's topic, and of exchanges with one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from dissector.engine.exchanges.exchange_records import record_rows
from dissector.engine.fields.window_query import WindowQuery
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
    again.tap = HttpExchanges(RegistryAnswers(store).see).feed
    for window in again.windows(gleaning=True):
        learn_schemas(again, window, store)
        del window  # frees its memory before the next window is read


def learn_schemas(capture: Capture, window: Window, store: SchemaStore) -> None:
    """Add the schemas of a window of a capture, which is being read."""
    for value in _registry_values(capture, window):
        add_record(store, value)


def registry_exchanges(capture: Capture, window: Window) -> Exchanges:
    """Return the exchanges of a window with records of the registry's topic."""
    from dissector.filter import parse

    if not len(window.exchanges):
        return window.exchanges
    query = WindowQuery(capture, window, frozenset(("topics",)))
    chosen = parse(f"topic == {SCHEMAS_TOPIC}").passing(query)
    return window.exchanges.rows(chosen)


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
