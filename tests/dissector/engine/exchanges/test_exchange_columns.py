"""The columns of a window equal the rows of its exchange objects."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dissector.engine.exchanges.exchange import COLUMNS
from dissector.engine.exchanges.exchange_columns import exchange_columns, with_names
from dissector.engine.exchanges.exchange_facts import read_summaries
from dissector.engine.reading.capture import Capture
from dissector.engine.tables.column_types import row_dict
from dissector.engine.tables.polars_tables import exchange_schema, frame
from tests.corpus import CAPTURES, each_capture


def windows(*paths: Path) -> Any:
    """Yield columns and rows of each window."""
    capture = Capture(paths)
    for window in capture.windows():
        reading, table = capture.reading, window.exchanges
        assert reading is not None
        rows = [exchange.row() for exchange in capture.exchanges_of(window)]
        known = read_summaries(table, capture.names)
        names = (reading.files_of, reading.endpoints.of_all, reading.origins_of)
        columns = exchange_columns(table, known, *names)
        yield with_names(columns, capture.names), rows


@pytest.mark.thinned(3)
@each_capture("pairs")
def test_columns_of_captures(path: Path) -> None:
    for columns, rows in windows(path):
        assert tuple(columns) == COLUMNS
        assert {len(column) for column in columns.values()} == {len(rows)}
        assert [row_dict(columns, row) for row in range(len(rows))] == rows
        assert frame(columns, exchange_schema()).to_dicts() == rows


def test_rows_have_their_files() -> None:
    captures = [columns["capture"] for columns, _ in windows(*CAPTURES[:3])]
    rows = [row["capture"] for _, rows in windows(*CAPTURES[:3]) for row in rows]
    assert [each.value(row) for each in captures for row in range(len(each))] == rows
    assert set(rows) == set(map(str, CAPTURES[:3]))
