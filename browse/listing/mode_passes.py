"""Passes that read records and events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from browse.listing.capture_access import CaptureAccess, Pass
from browse.listing.exchange_messages import EVIDENCE
from browse.listing.list_columns import MAX_BYTES
from browse.listing.row_parts import RowParts, columns_of_rows
from dissector.cli.records import decoded_rows
from dissector.column_catalogue import RECORDS
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.tables.column_types import Column, Columns, Slices
from dissector.engine.tables.concatenate import ColumnConcatenator
from dissector.engine.tables.polars_tables import Row, iter_rows, split_mixed
from dissector.protocol.embedded.own_topics import is_own_topic
from timeline.events.event import COLUMNS as EVENT_COLUMNS
from timeline.events.event import Event
from timeline.timeline import Timeline

MAX_RECORDS = 1_000_000
"""Maximum number of records in the list."""
_BATCH = 2000

_RECORD_NAMES = tuple(each.name for each in RECORDS)
_RECORD_NUMBERS = tuple(each.name for each in RECORDS if each.type.startswith("int"))


class RecordPass(Pass):
    """
    Reads the records that pass a filter.

    Attributes:
        parts: Records so far; long keys and values are cut.
        is_full: Whether matching records exceed the limit.
    """

    def __init__(self, access: CaptureAccess, text: str) -> None:
        super().__init__(access.reopen(text or None, True), access.total_bytes)
        self.parts = RowParts()
        self.is_full = False
        self._show_secrets = access.show_secrets

    def read(self) -> None:
        """Read the capture, in a background thread."""
        self.run(self._read)

    def _read(self) -> None:
        selection = self.source.selection

        def rows(exchange: Exchange) -> Iterator[Row]:
            return decoded_rows(selection.records(exchange), self._show_secrets)

        for window in self.windows(gleaning=self.source.filter is not None):
            for batch in split_mixed(selection.record_parts(window, is_own_topic, rows)):
                if isinstance(batch, Mapping):
                    self.parts.append(_shortened(batch))
                else:
                    self._append_rows(list(iter_rows(batch)))
                if len(self.parts) >= MAX_RECORDS:
                    self.is_full = True
                    self.cancel()
                    return
            del window

    def _append_rows(self, rows: list[Row]) -> None:
        for begin in range(0, len(rows), _BATCH):
            some = [_cut(row) for row in rows[begin : begin + _BATCH]]
            self.parts.append(columns_of_rows(some, _RECORD_NAMES, _RECORD_NUMBERS))


def _shortened(columns: Columns) -> Columns:
    """Copy columns, and cut their bytes."""
    cut: dict[str, Column] = {
        name: replace(column, length=np.minimum(column.length, MAX_BYTES))
        if isinstance(column, Slices)
        else column
        for name, column in columns.items()
    }
    joined = ColumnConcatenator()
    joined.add(cut)
    return joined.columns()


def _cut(row: Row) -> dict[str, Any]:
    def short(value: Any) -> Any:
        return value[:MAX_BYTES] if isinstance(value, bytes) else value

    return {name: short(row[name]) for name in _RECORD_NAMES}


class EventPass(Pass):
    """
    Reads the events of the timeline that pass a filter.

    Attributes:
        parts: The events so far.
    """

    def __init__(self, access: CaptureAccess, text: str) -> None:
        super().__init__(access.reopen(text or None, False), access.total_bytes)
        self.parts = RowParts()
        self._show_secrets = access.show_secrets

    def read(self) -> None:
        """Read the capture, in a background thread."""
        self.run(self._read)

    def _read(self) -> None:
        source = self.source
        found = Timeline(source.capture, passes=source.passes, show_secrets=self._show_secrets)
        batch: list[dict[str, Any]] = []
        for event in found.events(self.windows()):
            batch.append(_event_row(event))
            if len(batch) >= _BATCH:
                self._append(batch)
                batch = []
        self._append(batch)

    def _append(self, rows: list[dict[str, Any]]) -> None:
        if rows:
            numbers = ("time_ns", "end_ns", *EVIDENCE)
            self.parts.append(columns_of_rows(rows, (*_EVENT_NAMES, *EVIDENCE), numbers))


_EVENT_NAMES = tuple(name for name in EVENT_COLUMNS if name != "evidence")


def _event_row(event: Event) -> dict[str, Any]:
    """Return the row of an event, with the position of its first exchange."""
    row = {name: getattr(event, name) for name in _EVENT_NAMES}
    row["cause"] = event.cause or None  # an empty cell instead of an empty text
    first = event.evidence[0] if event.evidence else None
    places: tuple[int | None, ...] = (None,) * len(EVIDENCE)
    if first is not None:
        places = first.connection, first.first_packet, first.correlation_id
    return row | dict(zip(EVIDENCE, places, strict=True))
