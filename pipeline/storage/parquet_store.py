"""
Tables as Parquet, a folder for each day and each API.

    OUT/exchanges/date=2024-05-01/api=Produce/00012.parquet

Each task writes its own rows: Java would receive them one by one, which takes longer than
dissecting them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline.storage.atomic_files import atomic_write, join_path

DAY_NS = 86_400_000_000_000

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""The folder of null values, as Hive and Spark name it."""

GROUP_ROWS = 1 << 17
"""Approximate number of rows per write."""

MAX_BUFFERED_BYTES = 32 << 20
"""Approximate bytes of buffered rows for all tables, days and APIs together."""

DATE, API = "date", "api"

TIMES = ("request_time_ns", "response_time_ns", "time_ns", "first_time_ns")
"""
The first of these columns with a value gives the row's date.
"""


@dataclass(slots=True)
class _PartitionBuffer:
    batches: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0
    writer: pq.ParquetWriter | None = None
    open: ExitStack = field(default_factory=ExitStack)


class TableWriter:
    """
    Writes the rows of one task.

    Attributes:
        rows: Number of rows written, by table.
    """

    def __init__(self, folder: str, name: str) -> None:
        """Start; files of this name appear in the tables' folders at the end of the `with`."""
        self._folder = folder
        self._name = name
        self._buffers: dict[tuple[str, str], _PartitionBuffer] = {}
        self._bytes = 0
        self._open = ExitStack()
        self.rows: dict[str, int] = {}

    def __enter__(self) -> TableWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            with self._open:
                self._finish()
        self._open.__exit__(kind, error, trace)

    def _finish(self) -> None:
        """Write the rest, one file after the other: rows may be of any number of days."""
        for key, buffer in self._buffers.items():
            self._flush(*key)
            buffer.open.close()

    def add(self, table: str, batch: pa.RecordBatch) -> None:
        """Add rows of a table."""
        self.rows[table] = self.rows.get(table, 0) + batch.num_rows
        for partition, rows in split_by_partition(batch):
            buffer = self._buffers.get((table, partition))
            if buffer is None:
                buffer = self._buffers[table, partition] = _PartitionBuffer()
                self._open.push(buffer.open)
            buffer.batches.append(rows)
            buffer.rows += rows.num_rows
            buffer.bytes += rows.nbytes
            self._bytes += rows.nbytes
            if buffer.rows >= GROUP_ROWS:
                self._flush(table, partition)
        while self._bytes > MAX_BUFFERED_BYTES:
            self._flush(*max(self._buffers, key=lambda key: self._buffers[key].bytes))

    def _flush(self, table: str, partition: str) -> None:
        buffer = self._buffers[table, partition]
        if not buffer.rows:
            return
        if buffer.writer is None:
            path = partition_path(table, partition, self._name)
            file = buffer.open.enter_context(atomic_write(join_path(self._folder, path)))
            schema = buffer.batches[0].schema
            writer = pq.ParquetWriter(file, schema, compression="zstd")
            buffer.writer = buffer.open.enter_context(writer)
        buffer.writer.write_table(pa.Table.from_batches(buffer.batches))
        self._bytes -= buffer.bytes
        buffer.batches, buffer.rows, buffer.bytes = [], 0, 0


def partition_path(table: str, partition: str, name: str) -> str:
    """Return the path of a file in a partition, relative to the folder of the tables."""
    return join_path(table, *filter(None, (partition, f"{name}.parquet")))


def split_by_partition(batch: pa.RecordBatch) -> list[tuple[str, pa.RecordBatch]]:
    """Split rows by date and API: `date=2024-05-01/api=Fetch` and its rows, in their order."""
    keys: list[tuple[str, Any, Sequence[str]]] = []
    times = [batch.column(name) for name in TIMES if name in batch.schema.names]
    if times:
        days, texts = _days(pc.coalesce(*times))
        keys.append((DATE, days, texts))
    if API in batch.schema.names:
        apis = batch.column(API).dictionary_encode()
        names = [quote(each, safe=" ()") for each in apis.dictionary.to_pylist()]
        codes = apis.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)
        keys.append((API, codes, [*names, NULL_PARTITION]))
        batch = batch.drop_columns([API])
    return list(_split(batch, keys))


def _days(times: pa.Array) -> tuple[Any, list[str]]:
    numbers = times.fill_null(-DAY_NS).to_numpy(zero_copy_only=False) // DAY_NS
    days, codes = np.unique(numbers, return_inverse=True)
    return codes, [NULL_PARTITION if day < 0 else str(np.datetime64(int(day), "D")) for day in days]


def _split(
    batch: pa.RecordBatch, keys: list[tuple[str, Any, Sequence[str]]]
) -> list[tuple[str, pa.RecordBatch]]:
    if not batch.num_rows:
        return []
    code = np.zeros(batch.num_rows, np.int64)
    for _, codes, texts in keys:
        code = code * len(texts) + codes
    order = np.argsort(code, kind="stable")
    found, starts = np.unique(code[order], return_index=True)
    if len(found) == 1:
        return [(_partition_of(int(found[0]), keys), batch)]
    # Copies, not slices: buffered rows must not keep the whole batch in memory.
    return [
        (_partition_of(int(each), keys), batch.take(pa.array(rows)))
        for each, rows in zip(found, np.split(order, starts[1:]), strict=True)
    ]


def _partition_of(code: int, keys: list[tuple[str, Any, Sequence[str]]]) -> str:
    words: list[str] = []
    for name, _, texts in reversed(keys):
        code, at = divmod(code, len(texts))
        words.insert(0, f"{name}={texts[at]}")
    return "/".join(words)
