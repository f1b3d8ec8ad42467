"""Rows as polars tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.engine.exchanges.exchange import COLUMNS
from dissector.engine.exchanges.exchange_records import COLUMNS as RECORD_COLUMNS
from dissector.engine.tables import polars_tables
from dissector.engine.tables.column_types import Coded, Integers, row_dict


def test_schemas_have_the_columns_in_order() -> None:
    assert tuple(polars_tables.exchange_schema()) == COLUMNS
    assert tuple(polars_tables.record_schema()) == RECORD_COLUMNS


@pytest.mark.parametrize(
    ("rows", "sizes"), [(0, [0]), (1, [1]), (3, [3]), (4, [3, 1]), (6, [3, 3])]
)
def test_rows_come_in_batches(rows: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polars_tables, "BATCH_ROWS", 3)
    made = list(polars_tables.frames(({"n": n, "more": 1} for n in range(rows)), {"n": pl.Int64()}))
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


@given(st.lists(st.one_of(st.none(), st.integers(0, 3)), max_size=12))
def test_mixed_rows_keep_their_order(kinds: list[int | None]) -> None:
    """None is a row in columns, a number that many single rows."""
    count = sum(kind is None for kind in kinds)
    numbers = np.arange(count)
    columns = {"n": Integers(numbers), "kind": Coded(numbers % 2, ("even", "odd"))}
    expected: list[dict[str, Any]] = []
    at, between = [], []
    seen = 0
    for place, kind in enumerate(kinds):
        if kind is None:
            expected.append(row_dict(columns, seen))
            seen += 1
        else:
            rows = [{"n": 100 * place + each, "kind": "other"} for each in range(kind)]
            at.append(seen)
            between.append(rows)
            expected += rows
    mixed = polars_tables.MixedRows(columns, at, between)
    found = []
    for piece in mixed.batches():
        is_list = isinstance(piece, list)
        found += piece if is_list else [row_dict(piece, i) for i in range(len(piece["n"]))]
    assert found == expected
    schema = {"n": pl.Int64(), "kind": pl.String()}
    assert (
        pl.concat(polars_tables.part_frames([mixed, mixed], schema)).rows(named=True)
        == expected * 2
    )
