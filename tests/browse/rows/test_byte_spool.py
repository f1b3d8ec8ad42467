"""Columns of bytes in a file: the same values, and none of them in memory."""

from __future__ import annotations

import gc
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from browse.rows.byte_ranks import byte_ranks
from browse.rows.byte_spool import (
    ByteSpool,
    SpooledBytes,
    spool_bytes,
)
from browse.rows.row_parts import RowParts
from browse.rows.shown_rows import ShownRows
from dissector.cli.sorting import SortKey
from dissector.engine.tables.column_kinds import column_of
from dissector.engine.tables.column_types import Columns, Headers, Slices, row_dict
from dissector.engine.tables.exchange_table import NONE

VALUES = st.lists(st.none() | st.binary(max_size=30).map(lambda each: each * 2))


def spooled(values: list[bytes | None], spool: ByteSpool | None = None) -> SpooledBytes:
    found = spool_bytes({"value": column_of(values, Slices)}, spool or ByteSpool())["value"]
    assert isinstance(found, SpooledBytes)
    return found


@given(values=VALUES)
def test_values_are_read_back(values: list[bytes | None]) -> None:
    column = spooled(values, ByteSpool())
    whole = column.unpack()
    assert isinstance(whole, Slices)
    assert [column.value(row) for row in range(len(column))] == values
    assert [whole.value(row) for row in range(len(whole))] == values
    some = column.unpack(np.arange(0, len(values), 2))
    assert [some.value(row) for row in range(len(some))] == values[::2]


def test_headers_are_read_back() -> None:
    lists = [
        [{"key": "a", "value": b"1"}, {"key": "\udcff", "value": None}],
        [],
        [{"key": "", "value": b""}],
    ]
    column = spool_bytes({"headers": column_of(lists, Headers)}, ByteSpool())["headers"]
    assert [column.value(row) for row in range(3)] == lists
    some = column.unpack(np.array([2, 0]))  # type: ignore[union-attr]
    assert isinstance(some, Headers)
    assert [some.value(0), some.value(1)] == [lists[2], lists[0]]


@given(parts=st.lists(VALUES.filter(bool), min_size=1))
def test_ranks_are_in_the_order_of_the_values(parts: list[list[bytes | None]]) -> None:
    spool = ByteSpool()
    values = [value for part in parts for value in part]
    ranks = byte_ranks([spooled(part, spool) for part in parts]).tolist()
    assert [rank == NONE for rank in ranks] == [value is None for value in values]
    pairs = [(value, rank) for value, rank in zip(values, ranks, strict=True) if value is not None]
    pairs.sort()
    for (value, rank), (following, higher) in pairwise(pairs):
        assert (rank < higher) == (value < following)
        assert (rank == higher) == (value == following)


def records(spool: ByteSpool, *keys: bytes | None) -> Columns:
    lists = [[{"key": "h", "value": key}] for key in reversed(keys)]
    columns = {"key": column_of(keys, Slices), "headers": column_of(lists, Headers)}
    return spool_bytes(columns, spool)  # type: ignore[return-value]


def test_a_list_sorts_and_selects_by_columns_in_a_file() -> None:
    spool, parts = ByteSpool(), RowParts()
    parts.append(records(spool, b"cc", None, b"a"))
    parts.append(records(spool, b"b"))
    shown = ShownRows(parts)
    shown.update()
    shown.sort_by(SortKey("key", True))
    assert shown.numbers().tolist() == [0, 3, 2, 1]
    rows = [row_dict(part, row) for part in shown.columns() for row in range(len(part["key"]))]
    assert [row["key"] for row in rows] == [b"cc", b"b", b"a", None]
    assert rows == [parts.row(number) for number in (0, 3, 2, 1)]
    shown.sort_by(SortKey("headers", False))
    assert shown.numbers().tolist() == [1, 0, 3, 2]


def held_bytes(parts: RowParts) -> int:
    """Return the memory of all arrays and bytes referred to by parts, except their spool."""
    seen: set[int] = set()
    found, held = list[object](parts.parts), 0
    while found:
        each = found.pop()
        if id(each) in seen or isinstance(each, type | ByteSpool):
            continue
        seen.add(id(each))
        if isinstance(each, np.ndarray):
            held += each.nbytes if each.strides != (0,) else 0
        elif isinstance(each, bytes):
            held += len(each)
        found += gc.get_referents(each)
    return held


def test_values_are_not_kept_in_memory() -> None:
    """A part refers to its numbers only: neither to bytes nor to the arrays of its window."""
    spool, parts = ByteSpool(), RowParts()
    parts.append(records(spool, *(b"%0200d" % number for number in range(1000))))
    assert 0 < held_bytes(parts) < 20_000
    assert spool.size > 400_000
