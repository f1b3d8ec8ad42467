"""More columns of `pairs`: groups, partitions, schemas and fields of records, columns of hooks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.exchanges.exchange_columns import row_batches
from dissector.engine.exchanges.exchange_info import groups_of, partitions_of
from dissector.engine.reading.capture import Capture, Window
from dissector.engine.tables.column_kinds import coded
from dissector.engine.tables.column_types import Columns
from dissector.engine.tables.exchange_table import Exchanges
from dissector.filter.evaluate import values_at
from dissector.filter.operands import BodyPath
from dissector.query.contents.decoded_values import RecordValues
from dissector.query.contents.hooked_records import use_hook_columns
from dissector.query.contents.value_uses import fields_of, schemas_of
from dissector.query.selection import Selection
from dissector.summary.key_columns import HOOKED, is_value_field
from dissector.view.text.value_text import json_text

_SCHEMAS = ("key_schema", "value_schema")

CONTENTS = ("group", "partition", *_SCHEMAS)
"""Columns with a list of texts for each exchange, besides fields of records and those of hooks."""


def contents_among(keys: Iterable[str]) -> set[str]:
    """Return the keys that are columns of this module."""
    return {
        each for each in keys if each in CONTENTS or each.startswith(HOOKED) or is_value_field(each)
    }


def parts_with_contents(
    capture: Capture,
    tables: Iterable[tuple[Exchanges, Columns] | Iterator[Exchange]],
    chosen: Collection[str],
    values: Callable[[], RecordValues],
) -> Iterator[Columns]:
    """
    Yield the rows of `pairs` with more columns.

    Args:
        capture: The capture, which is being read.
        tables: Its exchanges by window, as `Selection.table` returns them.
        chosen: Names of `contents_among`.
        values: Returns what decodes records; called for schemas and fields only.

    Raises:
        UsageError: There is no such column of hooks.
    """
    hooked = [
        BodyPath("hook", tuple(each.split(".")[1:])) for each in chosen if each.startswith(HOOKED)
    ]
    use_hook_columns(capture, hooked)
    names = [name for name in CONTENTS if name in chosen]
    fields = sorted(filter(is_value_field, chosen))
    read_values = values() if fields or {*names} & {*_SCHEMAS} else None

    def contents(exchange: Exchange) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        if read_values is not None:
            if {*names} & {*_SCHEMAS}:
                found |= schemas_of(exchange, read_values)
            found |= fields_of(exchange, read_values, fields)
        if "group" in names:
            found["group"] = groups_of(exchange)
        if "partition" in names:
            found["partition"] = partitions_of(exchange)
        for path in hooked:
            values = values_at(exchange.body("hook"), path.path)
            found[str(path)] = [
                each if isinstance(each, str) else json_text(each)
                for each in values
                if each is not None
            ]
        return found

    for part in tables:
        if not isinstance(part, tuple):
            yield from row_batches(each.row() | contents(each) for each in part)
            continue
        table, columns = part
        reading = capture.reading
        assert reading is not None
        found = [contents(reading.exchange(table, row, capture.names)) for row in range(len(table))]
        more = {
            name: coded([tuple(each[name]) for each in found])
            for name in (*names, *fields, *map(str, hooked))
        }
        yield {**columns, **more}


def selected_contents(
    capture: Capture, windows: Iterable[Window], selection: Selection, chosen: Collection[str]
) -> Iterator[Columns]:
    """Yield the rows that pass with more columns; see `parts_with_contents`."""
    values = RecordValues(capture, capture.options.values)

    def tables() -> Iterator[tuple[Exchanges, Columns] | Iterator[Exchange]]:
        for window in windows:
            values.learn(window)
            yield selection.table(window)
            del window  # frees its memory before the next window is read

    return parts_with_contents(capture, tables(), chosen, lambda: values)
