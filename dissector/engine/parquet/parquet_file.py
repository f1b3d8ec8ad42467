"""
A Parquet file, written row group by row group.

Source: parquet.apache.org/docs/file-format; github.com/apache/parquet-format, parquet.thrift.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import BinaryIO

from dissector.engine.parquet.column_chunk import Chunk, encode
from dissector.engine.parquet.parquet_types import FileType, leaves, schema_elements
from dissector.engine.parquet.row_groups import RowGroup, regrouped
from dissector.engine.parquet.thrift import Int, Value, struct
from dissector.engine.reading.prefetch import map_in_threads

_MAGIC = b"PAR1"
_VERSION = 1
_BY_TYPE: Value = {1: {}}
"""`ColumnOrder`: bounds are compared as the type of their column."""


def write_groups(
    groups: Iterable[RowGroup],
    columns: Mapping[str, FileType],
    file: BinaryIO,
    metadata: Mapping[str, str],
    workers: int,
) -> None:
    """
    Write a file.

    Args:
        groups: The rows.
        columns: The type of each column.
        file: Receives the bytes.
        metadata: Keys and values for the file's metadata.
        workers: Number of groups encoded in parallel.
    """
    at = file.write(_MAGIC)
    written: list[Value] = []
    rows = 0
    encoded = partial(_encoded, columns=columns)
    for count, chunks in map_in_threads(regrouped(groups), encoded, workers, workers):
        written.append(_row_group(columns, chunks, at, count, len(written)))
        rows += count
        for each in chunks:
            at += file.write(each.pages)
    footer = struct(
        {
            1: _VERSION,
            2: list(schema_elements(columns)),
            3: Int(rows, 64),
            4: written,
            5: [{1: key, 2: value} for key, value in metadata.items()] or None,
            6: "kafkashark",
            7: [_BY_TYPE] * len(list(leaves(columns))),
        }
    )
    file.write(footer + len(footer).to_bytes(4, "little") + _MAGIC)


def _encoded(group: RowGroup, columns: Mapping[str, FileType]) -> tuple[int, list[Chunk]]:
    """Return the number of rows, and the columns as pages."""
    return group.rows, [
        chunk
        for name, kind in columns.items()
        for chunk in encode(group.columns[name], kind, group.rows)
    ]


def _row_group(
    columns: Mapping[str, FileType], chunks: list[Chunk], at: int, rows: int, ordinal: int
) -> Value:
    """Return `RowGroup` of chunks that are written from an offset of the file on."""
    begin, described = at, []
    for (path, kind), chunk in zip(leaves(columns), chunks, strict=True):
        described.append({2: Int(at, 64), 3: chunk.metadata(path, kind.physical, at)})
        at += len(chunk.pages)
    return {
        1: described,
        2: Int(sum(each.plain_bytes for each in chunks), 64),
        3: Int(rows, 64),
        5: Int(begin, 64),
        6: Int(at - begin, 64),
        7: Int(ordinal, 16),
    }
