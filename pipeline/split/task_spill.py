"""
What tasks leave for the tasks after them: files in a folder that all of them reach.

They hold bytes of the capture, secrets too, so that only their owner may read them.

Payload does not go through Spark: a shuffle takes ten times as long for a byte as writing it once
and reading it once. What Spark shuffles is where it lies.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import IO, Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from pipeline.split import shards
from pipeline.storage.atomic_files import atomic_write, join_path
from pipeline.storage.filesystems import open_file

_PARCELS = "parcels"

_OPTIONS = ipc.IpcWriteOptions(compression="lz4")
"""Rows of tables repeat themselves; parcels, of which records are compressed already, do not."""

BULK_BYTES = 8 << 20
"""About how many bytes of rows are joined."""

OutputLocation: TypeAlias = tuple[str, int, list[str]]
"""A folder in which a task has left rows, the task's number, and the tables."""


@dataclass(frozen=True, slots=True)
class BlockLocation:
    """
    Where a parcel lies.

    Attributes:
        part: Where it is to go.
        source: The range that it is of.
        number: Its place among the parcels of the range for the part.
        offset: Its first byte in the file of the range.
        length: Its bytes.
    """

    part: int
    source: int
    number: int
    offset: int
    length: int


class TaskOutputWriter:
    """What one task leaves; for a `with`, at whose end it is there."""

    def __init__(self, folder: str, source: int) -> None:
        self._folder = folder
        self._source = source
        self._open = ExitStack()
        self._tables: dict[str, Any] = {}
        self._parcels: IO[bytes] | None = None
        self._at = 0

    def __enter__(self) -> TaskOutputWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.__exit__(*error)

    def write_rows(self, table: str, batch: pa.RecordBatch) -> None:
        """Leave rows of a table."""
        writer = self._tables.get(table)
        if writer is None:
            path = _path(self._folder, table, self._source)
            file = self._open.enter_context(atomic_write(path, private=True))
            writer = ipc.new_stream(file, batch.schema, options=_OPTIONS)
            self._tables[table] = self._open.enter_context(writer)
        writer.write_batch(batch)

    def write_shard(self, batch: pa.RecordBatch) -> BlockLocation:
        """Leave a parcel."""
        if self._parcels is None:
            path = _path(self._folder, _PARCELS, self._source)
            self._parcels = self._open.enter_context(atomic_write(path, private=True))
        message = batch.serialize()
        self._parcels.write(message)
        lies = BlockLocation(
            batch.column("part")[0].as_py(),
            self._source,
            batch.column("number")[0].as_py(),
            self._at,
            message.size,
        )
        self._at += message.size
        return lies


def read_rows(folder: str, table: str, source: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table that a task has left."""
    with (
        open_file(_path(folder, table, source)) as file,
        ipc.open_stream(pa.PythonFile(file, "r")) as reader,
    ):
        yield from reader


def read_rows_of(places: Iterable[OutputLocation], table: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table that several tasks have left."""
    for folder, source, tables in places:
        if table in tables:
            yield from read_rows(folder, table, source)


def in_larger_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows in larger batches: what is done once for each batch is done less often."""
    waiting: list[pa.RecordBatch] = []
    held = 0
    for batch in batches:
        waiting.append(batch)
        held += batch.nbytes
        if held >= BULK_BYTES:
            yield _joined(waiting)
            waiting, held = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def read_shards(folder: str, places: Iterable[BlockLocation]) -> Iterator[pa.RecordBatch]:
    """Yield parcels, in the order of their places; one file is open at a time."""
    source, file = -1, None
    try:
        for place in places:
            if place.source != source:
                if file is not None:
                    file.close()
                source, file = place.source, open_file(_path(folder, _PARCELS, place.source))
            assert file is not None
            file.seek(place.offset)
            yield ipc.read_record_batch(_read(file, place.length), shards.SCHEMA)
    finally:
        if file is not None:
            file.close()


def _read(file: Any, length: int) -> pa.Buffer:
    """Read so many bytes, which may take more than one call."""
    pieces = np.empty(length, np.uint8)
    view, at = pieces.data, 0
    while at < length:
        count = file.readinto(view[at:])
        if not count:
            raise EOFError("a parcel is cut off")
        at += count
    return pa.py_buffer(pieces)


def _path(folder: str, table: str, source: int) -> str:
    return join_path(folder, table, f"{source:06d}.arrow")
