"""
Outputs of tasks for later tasks: files in a folder that all of them can reach.

They hold bytes of the capture, including secrets, so only their owner may read them.

Payload does not go through Spark: a shuffle takes ten times as long per byte as writing and reading
it once. Spark shuffles only the locations.
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

_SHARDS = "shards"

_OPTIONS = ipc.IpcWriteOptions(compression="lz4")
"""
Rows of tables compress well; shards do not, because their record batches are often compressed
already.
"""

BULK_BYTES = 8 << 20
"""About the size of the larger batches, in bytes."""

OutputLocation: TypeAlias = tuple[str, int, list[str]]
"""A folder with a task's rows, the task's number, and the tables."""


@dataclass(frozen=True, slots=True)
class BlockLocation:
    """
    Location of a shard.

    Attributes:
        part: Number of its part.
        source: Its source range.
        number: Its position among the range's shards for the part.
        offset: Its first byte in the file of the range.
        length: Its size in bytes.
    """

    part: int
    source: int
    number: int
    offset: int
    length: int


class TaskOutputWriter:
    """Writes the output of one task, which becomes visible at the end of the `with`."""

    def __init__(self, folder: str, source: int) -> None:
        self._folder = folder
        self._source = source
        self._open = ExitStack()
        self._tables: dict[str, Any] = {}
        self._shards: IO[bytes] | None = None
        self._at = 0

    def __enter__(self) -> TaskOutputWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.__exit__(*error)

    def write_rows(self, table: str, batch: pa.RecordBatch) -> None:
        """Write rows of a table."""
        writer = self._tables.get(table)
        if writer is None:
            path = _path(self._folder, table, self._source)
            file = self._open.enter_context(atomic_write(path, private=True))
            writer = ipc.new_stream(file, batch.schema, options=_OPTIONS)
            self._tables[table] = self._open.enter_context(writer)
        writer.write_batch(batch)

    def write_shard(self, batch: pa.RecordBatch) -> BlockLocation:
        """Write a shard; return its location."""
        if self._shards is None:
            path = _path(self._folder, _SHARDS, self._source)
            self._shards = self._open.enter_context(atomic_write(path, private=True))
        message = batch.serialize()
        self._shards.write(message)
        location = BlockLocation(
            batch.column("part")[0].as_py(),
            self._source,
            batch.column("number")[0].as_py(),
            self._at,
            message.size,
        )
        self._at += message.size
        return location


def read_rows(folder: str, table: str, source: int) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table in a task's output."""
    with (
        open_file(_path(folder, table, source)) as file,
        ipc.open_stream(pa.PythonFile(file, "r")) as reader,
    ):
        yield from reader


def read_rows_of(outputs: Iterable[OutputLocation], table: str) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a table in the outputs of several tasks."""
    for folder, source, tables in outputs:
        if table in tables:
            yield from read_rows(folder, table, source)


def in_larger_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows in larger batches, to reduce the cost per batch."""
    waiting: list[pa.RecordBatch] = []
    waiting_bytes = 0
    for batch in batches:
        waiting.append(batch)
        waiting_bytes += batch.nbytes
        if waiting_bytes >= BULK_BYTES:
            yield _joined(waiting)
            waiting, waiting_bytes = [], 0
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def read_shards(folder: str, locations: Iterable[BlockLocation]) -> Iterator[pa.RecordBatch]:
    """Yield shards in the order of their locations; one file is open at a time."""
    source, file = -1, None
    try:
        for location in locations:
            if location.source != source:
                if file is not None:
                    file.close()
                source, file = location.source, open_file(_path(folder, _SHARDS, location.source))
            assert file is not None
            file.seek(location.offset)
            yield ipc.read_record_batch(_read(file, location.length), shards.SCHEMA)
    finally:
        if file is not None:
            file.close()


def _read(file: Any, length: int) -> pa.Buffer:
    """Read a number of bytes, in several calls if necessary."""
    buffer = np.empty(length, np.uint8)
    view, at = buffer.data, 0
    while at < length:
        count = file.readinto(view[at:])
        if not count:
            raise EOFError("a shard is cut off")
        at += count
    return pa.py_buffer(buffer)


def _path(folder: str, table: str, source: int) -> str:
    return join_path(folder, table, f"{source:06d}.arrow")
