"""The columns of tables as columns of Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np

from dissector.engine.parquet.parquet_types import BYTE_ARRAY, ColumnType, FileType, ListType
from dissector.engine.parquet.row_groups import (
    Column,
    Flags,
    Lists,
    Names,
    Numbers,
    RowGroup,
    Texts,
    Values,
)
from dissector.engine.tables.column_types import (
    Coded,
    Columns,
    Headers,
    Integers,
    Milliseconds,
    SliceBuffers,
    Slices,
    row_count,
)
from dissector.engine.tables.column_types import Column as TableColumn
from dissector.engine.tables.exchange_table import NONE, Ints

Types: TypeAlias = Mapping[str, FileType]


def table_groups(parts: Iterable[Columns], types: Types) -> Iterator[RowGroup]:
    """Yield the rows of tables; each has all the columns that `types` names."""
    for part in parts:
        columns = {name: _column(part[name], kind) for name, kind in types.items()}
        yield RowGroup(row_count(part), columns)


def _column(column: TableColumn, kind: FileType) -> Column:
    match column:
        case Coded():
            return _coded(column, kind)
        case Integers():
            return Numbers(column.values, column.values != NONE)
        case Milliseconds():
            return Numbers(column.values_ns / 1e6, column.values_ns != NONE)
        case Slices():
            return Texts(column)
        case Headers():
            return _headers(column, kind)


def _coded(column: Coded, kind: FileType) -> Column:
    if isinstance(kind, ListType):
        return _coded_lists(column, kind)
    if kind.physical == BYTE_ARRAY and kind.logical is not None:
        return Names(column.codes, column.values)
    rows = np.where(column.codes == NONE, len(column.values), column.codes)
    return _selected(_values([*column.values, None], kind), rows)


def _coded_lists(column: Coded, kind: ListType) -> Lists:
    """Return lists shared by many rows."""
    distinct = column_of([*column.values, None], kind)
    assert isinstance(distinct, Lists)
    rows = np.where(column.codes == NONE, len(column.values), column.codes)
    counts = distinct.counts[rows]
    first = np.cumsum(distinct.counts) - distinct.counts
    ends = np.cumsum(counts)
    items = np.repeat(first[rows] - (ends - counts), counts) + np.arange(int(counts.sum()))
    fields = {name: _selected(each, items) for name, each in distinct.fields.items()}
    return Lists(counts, None if distinct.is_set is None else distinct.is_set[rows], fields)


def _selected(column: Values, rows: Ints) -> Values:
    match column:
        case Names():
            return Names(column.codes[rows], column.texts)
        case Numbers():
            is_set = None if column.is_set is None else column.is_set[rows]
            return Numbers(column.values[rows], is_set)
        case Texts():
            slices = column.slices
            return Texts(Slices(slices.start[rows], slices.length[rows], slices.buffers))


def _headers(column: Headers, kind: FileType) -> Column:
    """Return headers in the order of their rows."""
    items = column.items
    keys, values = (
        Slices(each.start[items], each.length[items], each.buffers)
        for each in (column.keys, column.values)
    )
    names = [keys.value(item) for item in range(len(keys))]
    if not all(name is None or name.isascii() for name in names):
        return column_of([column.value(row) for row in range(len(column))], kind)
    return Lists(column.count, None, {"key": Texts(keys), "value": Texts(values)})


def column_of(values: Sequence[Any], kind: FileType) -> Column:
    """Return Python's values as a column; None is null, structs are mappings."""
    if isinstance(kind, ListType):
        counts = np.array([len(each or ()) for each in values], np.int64)
        items = list(chain.from_iterable(each or () for each in values))
        fields = {
            name: _values([item[name] for item in items] if name else items, each)
            for name, each in kind.fields.items()
        }
        return Lists(counts, _is_set(values), fields)
    return _values(values, kind)


def _values(values: Sequence[Any], kind: ColumnType) -> Values:
    if kind.physical != BYTE_ARRAY:
        dtype = kind.item or np.bool_
        return Numbers(np.array([each or 0 for each in values], dtype), _is_set(values))
    if kind.logical is not None:
        numbers = {text: number for number, text in enumerate(dict.fromkeys(values))}
        codes = [NONE if each is None else numbers[each] for each in values]
        return Names(np.array(codes, np.int64), list(numbers))
    contents = [each or b"" for each in values]
    length = np.array([len(each) for each in contents], np.int64)
    is_set = np.array([each is not None for each in values], np.bool_)
    start = np.where(is_set, np.cumsum(length) - length, NONE)
    no_bytes = np.zeros(0, np.uint8)
    pool = np.frombuffer(b"".join(contents), np.uint8)
    return Texts(Slices(start, length, SliceBuffers(pool, no_bytes, no_bytes)))


def _is_set(values: Sequence[Any]) -> Flags:
    return np.array([each is not None for each in values], np.bool_)
