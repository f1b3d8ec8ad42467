"""
Ingestion of a file of a watched folder: it is split into shards, and all parts are informed.

Tasks return rows of `INGEST_SCHEMA`. Every part gets a row for every file, so that packet numbers
agree in all parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, fields, replace
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa

from dissector.capture.columns import unique
from pipeline.split.byte_ranges import limited_to_scan, ranges_of
from pipeline.split.collection import Collection, inspect_file
from pipeline.split.connection_index import index_range
from pipeline.split.task_spill import BlockLocation, TaskOutputWriter
from pipeline.storage.atomic_files import join_path
from pipeline.tables.dissect_task import SHARDS, UNREAD, dissect_range
from pipeline.tables.table_builder import TableOptions
from pipeline.tables.table_schemas import EVENTS

INGEST_SCHEMA = pa.schema(
    {
        "part": pa.int32(),
        "path": pa.string(),
        "packets": pa.int64(),
        "first_ns": pa.int64(),
        "latest_ns": pa.int64(),
        "fragments": pa.binary(),
        "source": pa.int64(),
        "number": pa.int32(),
        "offset": pa.int64(),
        "length": pa.int64(),
        "folder": pa.string(),
        "tables": pa.list_(pa.string()),
    }
)
"""
For every part, a row reports the arrival of a file, with IP fragments that other files complete
(`fragments`); with `number`, also the location of one of its shards; or, with `folder`, the folder
of the rows that a task has written.
"""

_NO_LOCATION = dict.fromkeys(("source", "number", "offset", "length"), -1)
"""No location: pandas makes numbers beside a null inexact."""

FILE_PART = -1
"""The part of problems that belong to no connection: files that are late, missing or damaged."""

FILES = "files"
"""The folder of the files' shards."""


def split_file(path: str, work: str, parts: int, options: TableOptions) -> Iterator[pa.RecordBatch]:
    """
    Write the shards of a file, and rows of its problems; yield ingest rows.

    Args:
        path: The file.
        work: The folder for outputs of tasks.
        parts: Number of parts for connections.
        options: Tables to make, and options of dissection.
    """
    file = inspect_file(path)
    if file.is_log:
        file = replace(file, problem="a request log, which pipeline reads without --watch")
    [byte_range] = ranges_of(Collection((file,)), file.size, options.decode_as)
    indexed = index_range(byte_range)
    byte_range = limited_to_scan(byte_range, indexed.scan)
    first_ns = -1 if file.first_ns is None else file.first_ns
    about_file = {
        "path": path,
        "packets": indexed.scan.packets,
        "first_ns": first_ns,
        "latest_ns": indexed.scan.latest_ns,
    }
    has_events = EVENTS in options.tables
    for part in (FILE_PART, *range(parts + has_events)):
        yield _row(**about_file, part=part, fragments=indexed.scan.split_fragments)
    keys = unique(np.asarray(indexed.rows.column("key")))
    folder, source = join_path(work, FILES), _source_of(path)
    written = set()
    with TaskOutputWriter(folder, source) as output:
        for table, batch in dissect_range(byte_range, keys, parts, options):
            if table == SHARDS:
                location = asdict(output.write_shard(batch))
                yield _row(**about_file, **location)
            elif table == "problems" or (table == UNREAD and file.is_capture):
                written.add(table)
                output.write_rows(table, batch)
        # The last part receives all connections again, as events depend on all.
        for table, batch in dissect_range(byte_range, keys, 1, options) if has_events else ():
            if table == SHARDS:
                location = asdict(output.write_shard(batch)) | {"part": parts}
                yield _row(**about_file, **location)
    if written:
        tables = sorted(written)
        yield _row(**about_file, part=FILE_PART, source=source, folder=folder, tables=tables)


def block_location(row: dict[str, Any]) -> BlockLocation:
    """Return the location of the shard in an ingest row."""
    return BlockLocation(**{each.name: int(row[each.name]) for each in fields(BlockLocation)})


def _source_of(path: str) -> int:
    """Return a number that is unique to a file."""
    return int.from_bytes(blake2b(path.encode(), digest_size=7).digest())


def _row(**values: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([_NO_LOCATION | values], schema=INGEST_SCHEMA)
