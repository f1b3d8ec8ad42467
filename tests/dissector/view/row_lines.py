"""Rows written one by one: the reference of those written in bulk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dissector.view.tables.row_formats import csv_cell, csv_header
from dissector.view.text.value_text import bytes_text, header_texts, json_text


def ndjson_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    return map(json_text, rows)


def csv_lines(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[str]:
    yield csv_header(columns)
    for row in rows:
        yield ",".join(csv_cell(row[name]) for name in columns) or csv_cell("")


def record_text(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of `records` with its key, value and each header as one text."""
    key, value = bytes_text(row["key"]), bytes_text(row["value"])
    return {**row, "key": key, "value": value, "headers": header_texts(row["headers"])}
