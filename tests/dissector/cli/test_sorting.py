"""Rows in the order of columns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.cli.sorting import SortKey, sort_keys, sorted_part, sorted_rows
from dissector.engine.tables.column_types import (
    Coded,
    Columns,
    Headers,
    Integers,
    JsonTexts,
    Milliseconds,
    SliceBuffers,
    Slices,
)
from dissector.engine.tables.exchange_table import NONE
from dissector.engine.tables.polars_tables import MixedRows, TablePart, iter_rows, split_mixed
from dissector.errors import UsageError


def test_sorted_by_several() -> None:
    rows = [{"a": a, "b": b} for a, b in [(2, "x"), (None, "z"), (1, "y"), (1, "x")]]
    keys = [(row["a"], row["b"]) for row in sorted_rows(rows, sort_keys("a,b", "ab"))]
    assert keys == [(None, "z"), (1, "x"), (1, "y"), (2, "x")]
    keys = [(row["b"], row["a"]) for row in sorted_rows(rows, sort_keys("b", "ab"))]
    assert keys == [("x", 2), ("x", 1), ("y", 1), ("z", None)], "equal rows keep their order"


def test_a_minus_sorts_in_descending_order() -> None:
    rows = [{"a": a, "b": b} for a, b in [(2, "x"), (None, "z"), (1, "y"), (1, "x")]]
    keys = [(row["a"], row["b"]) for row in sorted_rows(rows, sort_keys("-a,b", "ab"))]
    assert keys == [(2, "x"), (1, "x"), (1, "y"), (None, "z")]


@pytest.mark.parametrize("text", ["nope", "a,nope", "", "a,", "A"])
def test_an_unknown_column_is_an_error(text: str) -> None:
    assert sort_keys("b,-a", ["a", "b"]) == [SortKey("b", False), SortKey("a", True)]
    with pytest.raises(UsageError, match=r"--sort: no column '.*'; columns are a, b"):
        sort_keys(text, ["a", "b"])


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.binary() | st.floats(width=32),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(st.lists(VALUES))
def test_any_column_can_be_sorted(values: list[Any]) -> None:
    rows = sorted_rows([{"a": value} for value in values], sort_keys("a", "a"))
    keys = [row["a"] for row in rows]
    assert len(keys) == len(values)
    assert [value is None for value in keys] == sorted((v is None for v in values), reverse=True)


CELLS: Mapping[str, st.SearchStrategy[Any]] = {
    "word": st.none() | st.sampled_from(["", "b", "a", "ä", "\udcff"]),
    "list": st.sampled_from([[], ["x"], ["x", "y"], ["b"]]),
    "flag": st.booleans(),
    "number": st.none() | st.integers(NONE + 1, 3),
    "time": st.none() | st.sampled_from([0, 1, 10**15 + 1, 10**15, 1 << 62, (1 << 62) + 1]),
    "bytes": st.none() | st.binary(max_size=2),
    "json": st.none() | st.sampled_from([b'{"a": 1}', b'{"a": 2}']),
    "headers": st.lists(st.tuples(st.sampled_from("kh"), st.none() | st.binary()), max_size=2),
}
ROWS = st.fixed_dictionaries(dict(CELLS))


class ByteBuffers:
    """Bytes of a window, some in each of its buffers."""

    def __init__(self) -> None:
        self.texts = [b"xx", b"", b"yy"]

    def slices(self, kind: type[Slices], values: list[bytes | None]) -> Slices:
        self.texts[2] += b"-"
        start, length = [], []
        for value in values:
            start.append(NONE if value is None else 2 + len(self.texts[2]))
            length.append(-1 if value is None else len(value))
            self.texts[2] += value or b""
        return kind(np.array(start, np.int64), np.array(length, np.int64), None)  # type: ignore[arg-type]

    def buffers(self) -> SliceBuffers:
        return SliceBuffers(*(np.frombuffer(bytearray(text), np.uint8) for text in self.texts))


def in_columns(rows: list[dict[str, Any]]) -> Columns:
    pool = ByteBuffers()

    def coded(name: str) -> Coded:
        values = [row[name] for row in reversed(rows) if row[name] is not None] + ["unused"]
        codes = [NONE if row[name] is None else values.index(row[name]) for row in rows]
        return Coded(np.array(codes, np.int64), values)

    def numbers(name: str) -> np.ndarray:
        return np.array([NONE if row[name] is None else row[name] for row in rows], np.int64)

    counts = np.array([len(row["headers"]) for row in rows], np.int64)
    pairs = [("unused", None), *(pair for row in rows for pair in row["headers"])]
    out = {
        "word": coded("word"),
        "list": coded("list"),
        "flag": coded("flag"),
        "number": Integers(numbers("number")),
        "time": Milliseconds(numbers("time")),
        "bytes": pool.slices(Slices, [row["bytes"] for row in rows]),
        "json": pool.slices(JsonTexts, [row["json"] for row in rows]),
        "headers": Headers(
            1 + np.cumsum(counts) - counts,
            counts,
            pool.slices(Slices, [key.encode() for key, _ in pairs]),
            pool.slices(Slices, [value for _, value in pairs]),
        ),
    }
    buffers = pool.buffers()
    headers = out["headers"]
    assert isinstance(headers, Headers)
    for column in (out["bytes"], out["json"], headers.keys, headers.values):
        assert isinstance(column, Slices)
        column.buffers = buffers
    return out


def as_single_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as produced outside columns."""
    headers = [{"key": key, "value": value} for key, value in row["headers"]]
    time = None if row["time"] is None else row["time"] / 1e6
    body = None if row["json"] is None else json.loads(row["json"])
    return {**row, "headers": headers, "time": time, "json": body, "more": 1}


@st.composite
def parts(draw: st.DrawFn) -> list[TablePart]:
    out: list[TablePart] = []
    for rows in draw(st.lists(st.lists(ROWS, max_size=6), max_size=3)):
        match draw(st.sampled_from(["columns", "woven", "rows"])) if rows else "rows":
            case "columns":
                out.append(in_columns(rows))
            case "woven":
                at = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=3)))
                between = [list(map(as_single_row, draw(st.lists(ROWS, max_size=2)))) for _ in at]
                out.append(MixedRows(in_columns(rows), at, between))
            case _:
                out.append(map(as_single_row, rows))
    return out


def flat(part: TablePart) -> list[dict[str, Any]]:
    rows = [row for piece in split_mixed([part]) for row in iter_rows(piece)]
    return [{name: value for name, value in row.items() if name != "more"} for row in rows]


KEYS = st.builds(SortKey, st.sampled_from(list(CELLS)), st.booleans())


@given(parts(), st.lists(KEYS, min_size=1, max_size=2))
def test_columns_and_rows_are_sorted_equally(some: list[TablePart], keys: list[SortKey]) -> None:
    some = [each if isinstance(each, (Mapping, MixedRows)) else list(each) for each in some]
    rows = [row for each in some for row in flat(each)]
    expected = sorted_rows(map(texts, rows), keys)
    assert list(map(texts, flat(sorted_part(some, keys)))) == expected


def texts(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with JSON as text, its sort key."""
    body = row["json"]
    return {**row, "json": json.dumps(body) if isinstance(body, dict) else body and body.decode()}
