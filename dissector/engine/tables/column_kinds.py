"""
Values as a column of one of the kinds, for rows that are made one by one.

If a value does not fit the kind, the column is `Coded`, which holds any value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from dissector.engine.tables.column_types import (
    Coded,
    Column,
    Headers,
    Integers,
    JsonTexts,
    Milliseconds,
    SliceBuffers,
    Slices,
    select_rows,
)
from dissector.engine.tables.exchange_table import NONE

_NO_BYTES = np.zeros(0, np.uint8)
_MAX_MS = 2.0**63 / 1e6

_SCALARS = frozenset((str, bytes, int, float, bool, type(None)))


def column_of(values: Sequence[Any], kind: type[Any] = Coded) -> Column:
    """Return values as a column of a kind if they fit it, else `Coded`."""
    column = _MAKERS[kind](values)
    return coded(values) if column is None else column


def coded(values: Iterable[Any]) -> Coded:
    """Return values as a dictionary-encoded column."""
    index: dict[Hashable, int] = {}
    distinct: list[Any] = []
    codes: list[int] = []
    for value in values:
        if value is None:
            codes.append(NONE)
            continue
        code = index.setdefault(identity(value), len(distinct))
        if code == len(distinct):
            distinct.append(value)
        codes.append(code)
    return Coded(np.array(codes, np.int64), distinct)


def identity(value: Any) -> Hashable:
    """Return the identity of a value with its type: True is not 1."""
    if type(value) in _SCALARS:
        return type(value), value
    if isinstance(value, list | tuple):
        return list, tuple(map(identity, value))
    if isinstance(value, dict):
        values = tuple(value.values())
        kinds = tuple(map(type, values))
        if not _SCALARS.issuperset(kinds):
            values = tuple(map(identity, values))
        return dict, tuple(value), kinds, values
    return type(value), value


def _integers(values: Sequence[Any]) -> Integers | None:
    if not all(value is None or _is_storable(value) for value in values):
        return None
    return Integers(np.array([NONE if each is None else each for each in values], np.int64))


def _is_storable(value: Any) -> bool:
    return type(value) is int and NONE < value <= np.iinfo(np.int64).max


def _milliseconds(values: Sequence[Any]) -> Milliseconds | None:
    """Return floats in nanoseconds, if this is exact."""
    if not all(value is None or _is_short(value) for value in values):
        return None
    times_ns = [None if value is None else round(value * 1e6) for value in values]
    integers = _integers(times_ns)
    is_exact = all(
        time_ns is None or time_ns / 1e6 == value
        for time_ns, value in zip(times_ns, values, strict=True)
    )
    return Milliseconds(integers.values) if integers is not None and is_exact else None


def _is_short(value: Any) -> bool:
    return isinstance(value, float) and abs(value) < _MAX_MS


def _slices(values: Sequence[Any], kind: type[Slices] = Slices) -> Slices | None:
    """Return bytes, or texts in UTF-8, one behind the other."""
    if not all(value is None or isinstance(value, bytes | str) for value in values):
        return None
    contents = [_encoded(each) for each in values]
    length = np.array([len(each) for each in contents], np.int64)
    is_set = np.array([each is not None for each in values], np.bool_)
    start = np.where(is_set, np.cumsum(length) - length, NONE)
    content = np.frombuffer(b"".join(contents), np.uint8)
    return kind(start, length, SliceBuffers(content, _NO_BYTES, _NO_BYTES))


def _encoded(value: bytes | str | None) -> bytes:
    if not isinstance(value, str):
        return value or b""
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return value.encode("utf-8", "backslashreplace")


def _headers(values: Sequence[Any]) -> Headers | None:
    if not all(isinstance(value, list) for value in values):
        return None
    count = np.array([len(each) for each in values], np.int64)
    headers = [header for each in values for header in each]
    # Keys and values share their bytes, as all columns of records do.
    both = _slices([each["key"] for each in headers] + [each["value"] for each in headers])
    if both is None:
        return None
    keys, contents = (
        Slices(both.start[part], both.length[part], both.buffers)
        for part in (slice(0, len(headers)), slice(len(headers), None))
    )
    return Headers(np.cumsum(count) - count, count, keys, contents)


_MAKERS: Mapping[type[Any], Callable[[Sequence[Any]], Column | None]] = {
    Coded: coded,
    Integers: _integers,
    Milliseconds: _milliseconds,
    Slices: _slices,
    JsonTexts: lambda values: _slices(values, JsonTexts),
    Headers: _headers,
}


def in_one_kind(one: Column, other: Column) -> tuple[Column, Column]:
    """Return two columns in the same kind, if one of them is another than `Coded` and all fit."""
    if type(one) is type(other):
        return one, other
    for column, model in ((one, other), (other, one)):
        if isinstance(column, Coded):
            changed = _as_kind(column, type(model))
            if changed is not None:
                return (changed, model) if column is one else (model, changed)
    return _as_coded(one), _as_coded(other)


def _as_kind(column: Coded, kind: type[Any]) -> Column | None:
    distinct = column_of([*column.values, None], kind)
    if type(distinct) is not kind:
        return None
    rows = np.where(column.codes == NONE, len(column.values), column.codes)
    return select_rows({"": distinct}, rows)[""]


def _as_coded(column: Column) -> Coded:
    if isinstance(column, Coded):
        return column
    return coded([column.value(row) for row in range(len(column))])
