"""The keys of groups of exchanges: minute, second, client, API, topic, error and others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.tables.column_types import (
    Coded,
    Column,
    Columns,
    Integers,
    distinct,
    row_count,
)
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.engine.tables.polars_tables import escape_invalid_utf8
from dissector.summary.key_columns import columns_of_key, interval_ns, list_of_key

ORPHAN = "orphan"
"""Status of a response without a captured request; stands for its API, which is unknown."""

_UNITS = {"hour": "h", "minute": "m"}
"""Keys of time whose texts have no seconds, and numpy's unit."""

Label: TypeAlias = tuple[Any, ...]
"""The values of some keys."""

Software: TypeAlias = tuple[str | None, str | None]
"""Name and version of a client's software; None where unknown."""

SoftwareOf: TypeAlias = Callable[[int], Software]
"""Returns the software of the client of a connection, given by its number."""


@dataclass(slots=True)
class GroupedRows:
    """
    Rows in groups.

    Attributes:
        rows: The rows; a row is there once for each of its topics or errors, if these are keys.
        codes: Of each, the index of its label.
        labels: The labels.
    """

    rows: Ints
    codes: Ints
    labels: Sequence[Label]


def group_rows(columns: Columns, keys: Sequence[str], software_of: SoftwareOf) -> GroupedRows:
    """Group rows of `pairs` by keys."""
    count = len(next(iter(columns.values())))
    found = GroupedRows(np.arange(count), np.zeros(count, np.int64), [()])
    for key in keys:
        if (name := list_of_key(key)) is not None:
            column = columns[name]
            assert isinstance(column, Coded)
            positions, codes, labels = _explode(column, found.rows)
            found = GroupedRows(found.rows[positions], found.codes[positions], found.labels)
        else:
            codes, labels = _labels(columns, key, software_of)
            codes = codes[found.rows]
        found.codes, found.labels = _combine((found.codes, found.labels), (codes, labels))
    return found


_MIN_PAIRS, _PAIRS_PER_ITEM = 100, 4
"""An exchange with t topics and e errors has at most 100 + 4 (t + e) pairs of them."""


def _combine(
    one: tuple[Ints, Sequence[Label]], other: tuple[Ints, Sequence[Label]]
) -> tuple[Ints, Sequence[Label]]:
    """Return codes and labels of both together."""
    if len(one[1]) == 1 and one[1][0] == ():
        return other
    codes, found = distinct(one[0] * len(other[1]) + other[0])
    split = (divmod(code, len(other[1])) for code in found.tolist())
    return codes, [one[1][first] + other[1][second] for first, second in split]


def _labels(columns: Columns, key: str, software_of: SoftwareOf) -> tuple[Ints, Sequence[Label]]:
    """Return codes and labels of a key that each row has once."""
    if (length_ns := interval_ns(key)) is not None:
        return _time_labels(columns, length_ns, _UNITS.get(key, "s"))
    match key:
        case "client":
            return _combine(_coded(columns["client_id"]), _hosts(columns["client"]))
        case "version":
            return _coded(columns["api_version"])
        case "software":
            connection = columns["connection"]
            assert isinstance(connection, Coded)
            numbers = [None if each is None else software_of(each) for each in connection.values]
            return _unified(connection.codes, [each or (None, None) for each in numbers])
        case "principal" | "listener" | "security_protocol" if key not in columns:
            return np.zeros(row_count(columns), np.int64), [(None,)]  # only request logs have it
        case "api":
            codes, labels = _coded(columns[key])
            return np.where(_is_orphan(columns), len(labels), codes), [*labels, (ORPHAN,)]
        case _:
            return _coded(columns[key])


def _is_orphan(columns: Columns) -> NDArray[np.bool_]:
    """Return which rows are responses without a captured request, so that their API is unknown."""
    status = columns["status"]
    assert isinstance(status, Coded)
    orphans = [code for code, value in enumerate(status.values) if value == ORPHAN]
    return np.isin(status.codes, orphans)


def _coded(column: Column) -> tuple[Ints, Sequence[Label]]:
    """Return codes and labels of a column; null is a label too."""
    assert isinstance(column, Coded)
    codes = np.where(column.codes == NONE, len(column.values), column.codes)
    return codes, [*((escape_invalid_utf8(value),) for value in column.values), (None,)]


def _hosts(column: Column) -> tuple[Ints, Sequence[Label]]:
    """Return the addresses of endpoints, without their ports."""
    codes, labels = _coded(column)
    return _unified(codes, [(host_of(label[0] or ""),) for label in labels])


def host_of(endpoint: str) -> str:
    """Return the address of an endpoint."""
    return endpoint.rpartition(":")[0]


def _unified(codes: Ints, labels: Sequence[Label]) -> tuple[Ints, Sequence[Label]]:
    """Give equal labels one code."""
    numbers: dict[Label, int] = {}
    mapped = np.array([numbers.setdefault(each, len(numbers)) for each in labels], np.int64)
    return mapped[codes], list(numbers)


def _time_labels(columns: Columns, length_ns: int, unit: str) -> tuple[Ints, Sequence[Label]]:
    """Return the intervals in which exchanges began; for orphans, of the response."""
    request, response = columns["request_time_ns"], columns["response_time_ns"]
    assert isinstance(request, Integers)
    assert isinstance(response, Integers)
    time_ns = np.where(request.values == NONE, response.values, request.values)
    codes, found = distinct(np.where(time_ns == NONE, NONE, time_ns // length_ns))
    return codes, [(_time_text(each, length_ns, unit),) for each in found.tolist()]


def _time_text(number: int, length_ns: int, unit: str) -> str | None:
    """Return the begin of an interval, by its number since the epoch, as text in UTC."""
    if number == NONE:
        return None
    begin = np.int64(number * length_ns // 1_000_000_000).astype("datetime64[s]")
    return f"{begin.astype(f'datetime64[{unit}]')}Z".replace("T", " ")


def _explode(column: Coded, rows: Ints) -> tuple[Ints, Ints, Sequence[Label]]:
    """Return row and code of each item in the lists of some rows, and the labels."""
    names: dict[str, int] = {}
    flat = [[names.setdefault(name, len(names)) for name in each] for each in column.values]
    sizes = np.array([len(each) for each in flat], np.int64)
    firsts = np.cumsum(sizes) - sizes
    every = np.array([number for each in flat for number in each], np.int64)
    lists = column.codes[rows]
    counts = np.minimum(sizes[lists], _most_items(np.bincount(rows)[rows], sizes[lists]))
    positions = np.repeat(np.arange(len(rows)), counts)
    within = np.arange(len(positions)) - np.repeat(np.cumsum(counts) - counts, counts)
    codes = every[firsts[lists[positions]] + within]
    return positions, codes, [(escape_invalid_utf8(name),) for name in names]


def _most_items(times: Ints, sizes: Ints) -> Ints:
    """Return the weights of items that occur several times in a row, so that few pairs do."""
    pairs = _MIN_PAIRS + _PAIRS_PER_ITEM * (times + sizes)
    most: Ints = np.where(times > 1, np.maximum(pairs // times, 1), sizes)
    return most


def key_columns(keys: Sequence[str]) -> tuple[str, ...]:
    """Return the columns of keys."""
    return tuple(_columns_of(keys))


def _columns_of(keys: Sequence[str]) -> Iterator[str]:
    for key in keys:
        yield from columns_of_key(key) or ()
