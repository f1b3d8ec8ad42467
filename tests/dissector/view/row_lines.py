"""Rows written one by one: the reference of those written in bulk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dissector.view.tables.row_formats import csv_cell, csv_header
from dissector.view.text.value_text import json_text


def ndjson_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    return map(json_text, rows)


def csv_lines(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> Iterator[str]:
    yield csv_header(columns)
    for row in rows:
        yield ",".join(csv_cell(row[name]) for name in columns)
