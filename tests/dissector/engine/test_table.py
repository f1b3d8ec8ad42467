"""Rows as polars tables."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from dissector.engine import table
from dissector.engine.exchange import COLUMNS
from dissector.engine.records import COLUMNS as RECORD_COLUMNS


def test_schemas_are_the_columns_in_order() -> None:
    assert tuple(table.exchange_schema()) == COLUMNS
    assert tuple(table.record_schema()) == RECORD_COLUMNS


@pytest.mark.parametrize(
    ("rows", "sizes"), [(0, [0]), (1, [1]), (3, [3]), (4, [3, 1]), (6, [3, 3])]
)
def test_rows_come_in_batches(rows: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "BATCH_ROWS", 3)
    made = list(table.frames(({"n": n, "more": 1} for n in range(rows)), {"n": pl.Int64()}))
    assert [len(part) for part in made] == sizes
    assert pl.concat(made)["n"].to_list() == list(range(rows))
    assert made[0].columns == ["n"]


@pytest.mark.parametrize(
    ("value", "clean"),
    [
        ("grün", "grün"),
        ("caf\udce9", "caf\\xe9"),
        (["a", "\udcff"], ["a", "\\xff"]),
        (7, 7),
        (None, None),
        (b"\xff", b"\xff"),
    ],
)
def test_text_that_is_no_utf8_is_escaped(value: Any, clean: Any) -> None:
    assert table.clean(value) == clean
