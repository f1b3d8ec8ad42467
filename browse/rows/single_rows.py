"""Conversion of single rows to columns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from dissector.engine.tables.column_types import Coded, Column, Integers
from dissector.engine.tables.exchange_table import NONE
from dissector.engine.tables.polars_tables import Row


def columns_of_rows(
    rows: Sequence[Row], names: Iterable[str], numbers: Iterable[str]
) -> dict[str, Column]:
    """Convert rows to columns; `numbers` names integer columns."""
    integral = set(numbers)
    return {
        name: Integers(
            np.array([NONE if row[name] is None else row[name] for row in rows], np.int64)
        )
        if name in integral
        else coded([row[name] for row in rows])
        for name in names
    }


def coded(values: Iterable[Any]) -> Coded:
    """Return values as a dictionary-encoded column."""
    index: dict[Hashable, int] = {}
    distinct: list[Any] = []
    codes: list[int] = []
    for value in values:
        if value is None:
            codes.append(NONE)
            continue
        code = index.setdefault(_key(value), len(distinct))
        if code == len(distinct):
            distinct.append(value)
        codes.append(code)
    return Coded(np.array(codes, np.int64), distinct)


def _key(value: Any) -> Hashable:
    """Return the identity of a value with its type: True is not 1."""
    if isinstance(value, list):
        return list, tuple(map(_key, value))
    if isinstance(value, dict):
        return dict, tuple((name, _key(each)) for name, each in value.items())
    return type(value), value
