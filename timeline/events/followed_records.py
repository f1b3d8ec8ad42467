"""Records that a filter selects, with the exchanges that carried them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.reading.capture import Capture, Window
from dissector.engine.tables.column_types import Columns, Row, row_count
from dissector.engine.tables.exchange_table import Exchanges
from dissector.protocol.embedded.masking import is_secret_topic
from dissector.query.contents.decoded_values import RecordValues
from dissector.query.selection import Selection
from dissector.view.json.body import mask_record_row
from dissector.view.text.value_text import bytes_text

PRODUCE, FETCH = 0, 1
MAX_KEY = 60
"""Maximum number of characters of a key in texts."""


class FollowedRecord(NamedTuple):
    """
    A record in a Produce request or a Fetch response.

    Attributes:
        row: Row of the exchange in its window.
        is_produced: Whether it was produced; else fetched.
        topic: Name of the topic; its id without one.
        partition: Number of the partition.
        offset: Offset in the log; None for a produced record without a successful response.
        key: Text of its key; empty without one.
        is_tombstone: Whether its value is null.
        error: Error of its partition; empty without one, or without a response.
    """

    row: int
    is_produced: bool
    topic: str
    partition: int
    offset: int | None
    key: str
    is_tombstone: bool
    error: str


class FollowedRecords:
    """The records of a capture that pass a filter, window by window."""

    def __init__(self, capture: Capture, text: str, *, show_secrets: bool = False) -> None:
        """
        Start with the text of a filter of records.

        Raises:
            FilterError: The filter does not parse.
        """
        self._selection = Selection.of(capture, text, records=True)
        settings = capture.options.values
        self._values = self._selection.values or RecordValues(capture, settings)
        self._shows = show_secrets

    def of(self, window: Window) -> list[FollowedRecord]:
        """Return the records of a window that pass."""
        self._values.learn(window)
        parts = self._selection.record_parts(window, is_secret_topic, self._rows)
        found: list[FollowedRecord] = []
        for part in self._values.parts(parts, ("key_decoded",)):
            if row_count(part):
                found += _records(part, window.exchanges)
        return found

    def _rows(self, exchange: Exchange) -> Iterator[Row]:
        for row in self._selection.records(exchange):
            if not self._shows and row["topic"] is not None:
                mask_record_row(row["topic"], row)
            yield row


def _records(columns: Columns, table: Exchanges) -> Iterator[FollowedRecord]:
    """Yield the records in columns; `table` has their exchanges."""
    rows = _exchange_rows(table)
    for at in range(row_count(columns)):
        row: dict[str, Any] = {name: columns[name].value(at) for name in _NEEDED}
        is_produced = row["api"] == "Produce"
        key = row["connection"], row["correlation_id"], PRODUCE if is_produced else FETCH
        if key not in rows:
            continue
        offset, error = row["offset"], row["error"] or ""
        yield FollowedRecord(
            rows[key],
            is_produced,
            row["topic"] or str(row["topic_id"]),
            row["partition"],
            None if offset is None or offset < 0 else offset,
            _key_text(row["key_decoded"], row["key"]),
            row["value"] is None,
            "" if error == "NONE" else error,
        )


_NEEDED = (
    *("connection", "correlation_id", "api", "topic", "topic_id", "partition", "offset"),
    *("key", "key_decoded", "value", "error"),
)


def _exchange_rows(table: Exchanges) -> dict[tuple[int, int, int], int]:
    """Return the rows of Produce and Fetch by connection, correlation id and API."""
    rows = np.flatnonzero(np.isin(table.api_key, (PRODUCE, FETCH)))
    columns = table.connection[rows], table.correlation_id[rows], table.api_key[rows]
    keys = zip(*(each.tolist() for each in columns), strict=True)
    return dict(zip(keys, rows.tolist(), strict=True))


def _key_text(decoded: bytes | None, key: bytes | None) -> str:
    """Return a key as a short text; `decoded` is JSON."""
    if decoded is None:
        text = bytes_text(key) or ""
    elif decoded.startswith(b'"'):
        text = json.loads(decoded)
    else:
        text = decoded.decode()
    return text if len(text) <= MAX_KEY else f"{text[: MAX_KEY - 3]}..."
