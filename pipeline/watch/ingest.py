"""
Ingestion of a file of a watched folder: it is split into shards, and all parts are informed.

Tasks return rows of `INGEST_SCHEMA`. Every part gets a row for every file, so that packet numbers
agree in all parts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, fields
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa

from dissector.capture.columns import unique
from dissector.capture.formats.capture_reader import read_packets
from dissector.capture.formats.conversions import blocks_of
from dissector.request_log.converted_log import ConvertedLog
from dissector.request_log.log_packets import LogConnections
from pipeline.split.byte_ranges import limited_to_scan, ranges_of
from pipeline.split.collection import Collection, File, inspect_file
from pipeline.split.connection_index import index_range
from pipeline.split.task_spill import BlockLocation, TaskOutputWriter
from pipeline.storage.atomic_files import join_path
from pipeline.storage.stored_file import StoredFile
from pipeline.storage.task_attempts import will_be_retried
from pipeline.tables.dissect_task import SHARDS, UNREAD, dissect_range
from pipeline.tables.table_builder import TableOptions
from pipeline.tables.table_schemas import EVENTS, SCHEMAS
from pipeline.watch.log_feed import text_shard, whole_lines

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

LOG_PART = 0
"""The part of all connections of request logs: each depends on the logs before it."""

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
        yield from _split_log(file, work, parts, options)
        return
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


def _split_log(
    file: File, work: str, parts: int, options: TableOptions
) -> Iterator[pa.RecordBatch]:
    """
    Write the text of a log for the part that converts it, and for that of events.

    Alone it has at least as many packets as behind the logs before it.
    """
    folder, source = join_path(work, FILES), _source_of(file.path)
    receivers = (LOG_PART, parts) if EVENTS in options.tables else (LOG_PART,)
    stored, locations = StoredFile(file.path, file.path), list[dict[str, Any]]()
    with TaskOutputWriter(folder, source) as output:

        def texts() -> Iterator[bytes]:
            blocks = whole_lines(blocks_of(file.path, {file.path: stored}))
            for number, text in enumerate(blocks):
                for part in receivers:
                    location = output.write_shard(text_shard(part, number, text))
                    locations.append(asdict(location))
                yield text

        alone = ConvertedLog(texts(), LogConnections(), options.timezone)
        if stored.failure is not None:
            if will_be_retried():
                raise stored.failure
            what, position = stored.failure.what, stored.failure.position
            rows = [{"capture": file.path, "kind": "file", "problem": what, "position": position}]
            output.write_rows(
                "problems", pa.RecordBatch.from_pylist(rows, schema=SCHEMAS["problems"])
            )
    times = [each.time_ns for each in read_packets(["-"], stdin=alone.open())]  # type: ignore[arg-type]
    every = np.concatenate([np.zeros(0, np.int64), *times])
    about_file = {
        "path": file.path,
        "packets": len(every),
        "first_ns": int(every[0]) if len(every) else -1,
        "latest_ns": int(every.max(initial=0)),
        "fragments": b"",
    }
    for part in (FILE_PART, *range(parts + (EVENTS in options.tables))):
        yield _row(**about_file, part=part)
    for each in locations:
        yield _row(**about_file, **each)
    if stored.failure is not None:
        yield _row(**about_file, part=FILE_PART, source=source, folder=folder, tables=["problems"])


def block_location(row: dict[str, Any]) -> BlockLocation:
    """Return the location of the shard in an ingest row."""
    return BlockLocation(**{each.name: int(row[each.name]) for each in fields(BlockLocation)})


def _source_of(path: str) -> int:
    """Return a number that is unique to a file."""
    return int.from_bytes(blake2b(path.encode(), digest_size=7).digest())


def _row(**values: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([_NO_LOCATION | values], schema=INGEST_SCHEMA)
