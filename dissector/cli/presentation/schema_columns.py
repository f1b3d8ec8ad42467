"""Columns of exchanges with the schemas of their records."""

from __future__ import annotations

from collections.abc import Iterator

from dissector.cli.capture_source import Source
from dissector.engine.exchanges.exchange_columns import row_batches
from dissector.engine.tables.column_kinds import coded
from dissector.engine.tables.column_types import Columns

SCHEMA_KEYS = ("key_schema", "value_schema")
"""Keys of statistics that need decoded records."""


def parts_with_schemas(source: Source) -> Iterator[Columns]:
    """Yield the rows of `pairs` with `SCHEMA_KEYS`: a list of schemas in each."""
    from dissector.query.value_uses import schemas_of

    values = source.record_values()
    for part in source.tables():
        if not isinstance(part, tuple):
            yield from row_batches(each.row() | schemas_of(each, values) for each in part)
            continue
        table, columns = part
        reading = source.capture.reading
        assert reading is not None
        found = [
            schemas_of(reading.exchange(table, row, source.capture.names), values)
            for row in range(len(table))
        ]
        more = {name: coded([tuple(each[name]) for each in found]) for name in SCHEMA_KEYS}
        yield {**columns, **more}
