"""
A file that has come to a watched folder: it is divided into parcels, and all parts are told of it.

What a task tells are notes. Every part is told of every file, so that all number its packets alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, fields
from hashlib import blake2b
from typing import Any

import numpy as np
import pyarrow as pa

from pipeline.split.byte_ranges import limited_to_scan, ranges_of
from pipeline.split.collection import Collection, inspect_file
from pipeline.split.connection_index import index_range
from pipeline.split.task_spill import BlockLocation, TaskOutputWriter
from pipeline.storage.atomic_files import join_path
from pipeline.tables.dissect_task import SHARDS, dissect_range
from pipeline.tables.table_builder import Wanted

INGEST_SCHEMA = pa.schema(
    {
        "part": pa.int32(),
        "path": pa.string(),
        "packets": pa.int64(),
        "first_ns": pa.int64(),
        "latest_ns": pa.int64(),
        "loose": pa.binary(),
        "source": pa.int64(),
        "number": pa.int32(),
        "offset": pa.int64(),
        "length": pa.int64(),
        "left": pa.string(),
        "tables": pa.list_(pa.string()),
    }
)
"""
That a file has come, which every part is told, with its fragments of IP that others must complete;
with `number`, where a parcel of it lies; or, with `left`, the folder in which a task has left rows.
"""

_NOWHERE = dict.fromkeys(("source", "number", "offset", "length"), -1)
"""What stands where there is nothing: pandas makes numbers beside a null inexact."""

FILE_PART = -1
"""Tells what belongs to no connection: files that are late, missing or damaged."""

FILES = "files"
"""The folder of what files were divided into."""


def split_file(path: str, work: str, parts: int, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    """
    Leave the parcels of a file, and rows of what is wrong with it; yield notes.

    Args:
        path: The file.
        work: The folder for what tasks leave.
        parts: In how many parts connections are dissected.
        wanted: What is wanted.
    """
    looked = inspect_file(path)
    [each] = ranges_of(Collection((looked,)), looked.size)
    indexed = index_range(each)
    each = limited_to_scan(each, indexed.scan)
    first_ns = -1 if looked.first_ns is None else looked.first_ns
    place = {
        "path": path,
        "packets": indexed.scan.packets,
        "first_ns": first_ns,
        "latest_ns": indexed.scan.latest_ns,
    }
    for part in (FILE_PART, *range(parts)):
        yield _note(**place, part=part, loose=indexed.scan.split_fragments)
    keys = np.unique(np.asarray(indexed.rows.column("key")))
    folder, source = join_path(work, FILES), _source_of(path)
    told = False
    with TaskOutputWriter(folder, source) as leaving:
        for table, batch in dissect_range(each, keys, parts, wanted):
            if table == SHARDS:
                lies = asdict(leaving.write_shard(batch))
                yield _note(**place, **lies)
            elif table == "problems":
                told = True
                leaving.write_rows(table, batch)
    if told:
        yield _note(**place, part=FILE_PART, source=source, left=folder, tables=["problems"])


def block_location(note: dict[str, Any]) -> BlockLocation:
    """Return where the parcel lies that a note tells of."""
    return BlockLocation(**{each.name: int(note[each.name]) for each in fields(BlockLocation)})


def _source_of(path: str) -> int:
    """Return a number that is a file's alone."""
    return int.from_bytes(blake2b(path.encode(), digest_size=7).digest())


def _note(**values: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([_NOWHERE | values], schema=INGEST_SCHEMA)
