"""Rows as polars tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from dissector.engine.exchanges.exchange import COLUMNS
from dissector.engine.exchanges.exchange_records import COLUMNS as RECORD_COLUMNS
from dissector.engine.tables import polars_tables
from dissector.engine.tables.column_types import Integers


def test_schemas_have_the_columns_in_order() -> None:
    assert tuple(polars_tables.exchange_schema()) == COLUMNS
    assert tuple(polars_tables.record_schema()) == RECORD_COLUMNS


@pytest.mark.parametrize(
    ("rows", "sizes"), [(0, [0]), (1, [1]), (3, [3]), (4, [3, 1]), (6, [3, 3])]
)
def test_rows_come_in_batches(rows: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polars_tables, "BATCH_ROWS", 3)
    part = {"n": Integers(np.arange(rows)), "more": Integers(np.zeros(rows, np.int64))}
    made = list(polars_tables.part_frames([part], {"n": pl.Int64()}))
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
def test_invalid_utf8_is_escaped(value: Any, clean: Any) -> None:
    assert polars_tables.escape_invalid_utf8(value) == clean
