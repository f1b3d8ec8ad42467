"""Passes that read records and events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from browse.listing.capture_access import CaptureAccess, Pass
from browse.listing.list_columns import MAX_BYTES
from browse.rows.byte_spool import ByteSpool, spool_bytes
from browse.rows.exchange_messages import EVERY_EVIDENCE, EVIDENCE
from browse.rows.row_parts import RowParts
from dissector.cli.records import decoded_rows
from dissector.column_catalogue import RECORDS
from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.tables.column_types import Columns, Integers, Row, Slices, row_count
from dissector.engine.tables.columns_of import columns_of
from dissector.engine.tables.concatenate import ColumnConcatenator
from dissector.protocol.embedded.masking import is_secret_topic
from dissector.protocol.embedded.secrecy.hidden_records import records_are_hidden
from dissector.view.json.body import hide_record
from timeline.events.event import COLUMNS as EVENT_COLUMNS
from timeline.events.event import Event
from timeline.timeline import Timeline

MAX_RECORDS = 1_000_000
"""Maximum number of records in the list."""
_BATCH = 2000
_PART_RECORDS = 30_000
"""Approximate number of records in a part."""

_RECORD_NAMES = tuple(each.name for each in RECORDS)


class RecordPass(Pass):
    """
    Reads the records that pass a filter.

    Attributes:
        parts: Records so far; keys, values and headers are in a file, long ones cut.
        is_full: Whether matching records exceed the limit.
    """

    def __init__(self, access: CaptureAccess, text: str) -> None:
        super().__init__(access.reopen(text or None, True), access.total_bytes)
        self.parts = RowParts()
        self.is_full = False
        self._joined, self._waiting = ColumnConcatenator(), 0
        self._show_secrets = access.show_secrets

    def read(self) -> None:
        """Read the capture, in a background thread."""
        self.run(self._read)

    def _read(self) -> None:
        selection, self._spool = self.source.selection, ByteSpool()

        def rows(exchange: Exchange) -> Iterator[Row]:
            found = decoded_rows(selection.records(exchange), self._show_secrets)
            return map(_hidden, found) if records_are_hidden() else found

        for window in self.windows(gleaning=self.source.filter is not None):
            parts = selection.record_parts(window, is_secret_topic, rows)
            parts = self.source.without_secrets(parts, self._show_secrets)
            for columns in parts:
                self._add({name: columns[name] for name in _RECORD_NAMES})
                if self.is_full:
                    self.cancel()
                    return
            self._append()
            del window

    def _add(self, columns: Columns) -> None:
        """Add records to the next part; a part has many, because each part costs some kilobytes."""
        self._joined.add(_cut(columns))
        self._waiting += row_count(columns)
        self.is_full = len(self.parts) + self._waiting >= MAX_RECORDS
        if self._waiting >= _PART_RECORDS or self.is_full:
            self._append()

    def _append(self) -> None:
        if self._waiting:
            self.parts.append(spool_bytes(self._joined.columns(), self._spool))
            self._joined, self._waiting = ColumnConcatenator(), 0


def _hidden(row: Row) -> Row:
    """Return a row without the bytes of its key and value."""
    shown = dict(row)
    hide_record(shown)
    return shown


def _cut(columns: Columns) -> Columns:
    return {
        name: replace(column, length=np.minimum(column.length, MAX_BYTES))
        if isinstance(column, Slices)
        else column
        for name, column in columns.items()
    }


class EventPass(Pass):
    """
    Reads the events of the timeline that pass a filter.

    Attributes:
        parts: The events so far.
        is_full: False: the list holds all events.
    """

    is_full = False

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
            self.parts.append(columns_of(rows, _EVENT_KINDS))


_EVENT_KINDS = dict.fromkeys(("time_ns", "end_ns", "count", *EVIDENCE), Integers)
_EVENT_NAMES = tuple(name for name in EVENT_COLUMNS if name != "evidence")


def _event_row(event: Event) -> dict[str, Any]:
    """Return the row of an event, with the position of its first exchange."""
    row = {name: getattr(event, name) for name in _EVENT_NAMES}
    row["cause"] = event.cause or None  # an empty cell instead of an empty text
    first = event.evidence[0] if event.evidence else None
    places: tuple[int | None, ...] = (None,) * len(EVIDENCE)
    if first is not None:
        places = first.connection, first.first_packet, first.correlation_id
    row[EVERY_EVIDENCE] = list(event.evidence)
    return row | dict(zip(EVIDENCE, places, strict=True))
