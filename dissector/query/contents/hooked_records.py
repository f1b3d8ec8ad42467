"""What hooks get of a capture: records, of columns and of rows; and which columns they give it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dissector.engine.reading.capture import Capture
from dissector.engine.tables.column_types import (
    Coded,
    Column,
    Columns,
    Headers,
    Integers,
    Row,
    Slices,
)
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.filter.operands import BodyPath, Source
from dissector.hooks.hook_types import Record

CELLS = ("partition", "offset", "timestamp_ms", "client_id", "packet")
"""The columns of `records` with the attributes of a `Record` behind its headers, in order."""

_NO_HEADERS: Mapping[str, bytes] = {}


def records_of(columns: Columns, rows: Ints) -> Iterator[Record]:
    """Yield some rows of `records`."""
    return map(
        Record,
        _cells(columns["topic"], rows),
        contents_of(columns["key"], rows),
        contents_of(columns["value"], rows),
        headers_of(columns["headers"], rows),
        *(_cells(columns[name], rows) for name in CELLS),
    )


def record_of(row: Row) -> Record:
    """Return a row of `records`."""
    key, value = (_content(row[side]) for side in ("key", "value"))
    headers = {each["key"]: each["value"] or b"" for each in row["headers"]}
    return Record(row["topic"], key, value, headers, *(row[name] for name in CELLS))


def use_hook_columns(capture: Capture, sources: Iterable[Source]) -> None:
    """
    Make a capture compute the columns of hooks that are among the sources of names.

    Raises:
        UsageError: A script can't be run, or has no such column.
    """
    labels = [
        each.path[0] for each in sources if isinstance(each, BodyPath) and each.kind == "hook"
    ]
    if not labels:
        return
    options = capture.options
    if options.hook_columns is None:
        from dissector.hooks.hook_columns import HookColumns

        scripts = options.values.scripts if options.values else ()
        options.hook_columns = HookColumns(scripts, capture.notices.append)
    for label in labels:
        options.hook_columns.check(label)


def contents_of(column: Column, rows: Ints) -> Iterator[bytes | None]:
    """Yield the keys or values of some rows."""
    if isinstance(column, Slices):
        return column.contents(rows)
    return (_content(column.value(row)) for row in rows.tolist())


def headers_of(column: Column, rows: Ints) -> Iterator[Mapping[str, bytes]]:
    """Yield the headers of some rows by key; of several with one key the last."""
    counts = column.count[rows].tolist() if isinstance(column, Headers) else [1] * len(rows)
    for row, count in zip(rows.tolist(), counts, strict=True):
        if count:
            found: Any = column.value(row)
            yield {each["key"]: each["value"] or b"" for each in found or ()}
        else:
            yield _NO_HEADERS


def _content(value: Any) -> Any:
    """Return the bytes of a key or a value, which is a text where it is masked."""
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


def _cells(column: Column, rows: Ints) -> Sequence[Any]:
    """Return the cells of some rows, None for null."""
    match column:
        case Integers():
            return [None if each == NONE else each for each in column.values[rows].tolist()]
        case Coded():
            found = {**dict(enumerate(column.values)), NONE: None}
            return [found[code] for code in column.codes[rows].tolist()]
    return [column.value(row) for row in rows.tolist()]
