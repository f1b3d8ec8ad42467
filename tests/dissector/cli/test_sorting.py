"""Rows in the order of columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.cli.sorting import SortKey, sort_keys, sorted_parts, sorted_rows
from dissector.engine.tables.column_types import (
    Coded,
    Columns,
    Headers,
    Integers,
    JsonTexts,
    Milliseconds,
    SliceBuffers,
    Slices,
    iter_rows,
)
from dissector.engine.tables.columns_of import columns_of, with_inserted
from dissector.engine.tables.exchange_table import NONE
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


KINDS = {
    "number": Integers,
    "time": Milliseconds,
    "bytes": Slices,
    "json": JsonTexts,
    "headers": Headers,
}


def apart(rows: list[dict[str, Any]]) -> Columns:
    """Return the columns of rows that were made one by one; they have one more."""
    return columns_of([{**as_row(row), "more": 1} for row in rows], KINDS)


def as_row(row: dict[str, Any]) -> dict[str, Any]:
    headers = [{"key": key, "value": value} for key, value in row["headers"]]
    time = None if row["time"] is None else row["time"] / 1e6
    return {**row, "headers": headers, "time": time}


@st.composite
def parts(draw: st.DrawFn) -> list[tuple[list[dict[str, Any]], Columns]]:
    out: list[tuple[list[dict[str, Any]], Columns]] = []
    for rows in draw(st.lists(st.lists(ROWS, min_size=1, max_size=6), max_size=3)):
        match draw(st.sampled_from(["in bulk", "woven", "apart"])):
            case "in bulk":
                out.append((rows, in_columns(rows)))
            case "woven":
                others = draw(st.lists(ROWS, min_size=1, max_size=3))
                positions = draw(st.lists(st.integers(0, len(rows)), min_size=3, max_size=3))
                at = np.array(sorted(positions[: len(others)]), np.int64)
                every = [*rows]
                for place, row in reversed(list(zip(at.tolist(), others, strict=True))):
                    every.insert(place, row)
                out.append((every, with_inserted(in_columns(rows), at, apart(others))))
            case _:
                out.append((rows, apart(rows)))
    return out


def without_more(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "more"} for row in rows]


KEYS = st.builds(SortKey, st.sampled_from(list(CELLS)), st.booleans())


@given(parts(), st.lists(KEYS, min_size=1, max_size=2))
def test_rows_are_sorted(
    some: list[tuple[list[dict[str, Any]], Columns]], keys: list[SortKey]
) -> None:
    rows = [as_row(row) for every, _ in some for row in every]
    assert [row for _, columns in some for row in without_more(iter_rows(columns))] == rows
    found = sorted_parts([columns for _, columns in some], keys)
    assert [row for columns in found for row in without_more(iter_rows(columns))] == sorted_rows(
        rows, keys
    )
