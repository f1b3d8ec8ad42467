"""
Tables as Parquet, a folder for each day, and in or around it one for the cluster if it has a name.

    OUT/exchanges/date=2024-05-01/00012.parquet
    OUT/exchanges/date=2024-05-01/cluster=prod/00012.parquet

Each task writes its own rows: Java would receive them one by one, which takes longer than
dissecting them. Most APIs have few rows, so they share files, in their order, with statistics by
which a query for one of them skips the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dissector.capture.columns import Int64s
from pipeline.storage.atomic_files import atomic_write, join_path
from pipeline.storage.text_codes import with_used_texts

DAY_NS = 86_400_000_000_000

NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
"""The folder of null values, as Hive and Spark name it."""

GROUP_ROWS = 1 << 17
"""Approximate number of rows per write."""

MAX_BUFFERED_BYTES = 32 << 20
"""Approximate bytes of buffered rows for all tables and days together."""

FILE_BYTES = 128 << 20
"""Size from which on a task begins another file."""

DATE, CLUSTER, API = "date", "cluster", "api"

FOLDERS = (DATE,)
"""
The folders of a table, from outside in: `DATE` for those of days, and one as `cluster=prod`.
"""

DISTINCT = ("_ns", "_ms", "packet", "correlation_id")
"""Ends of the names of columns in which hardly a value is twice."""

TIMES = ("request_time_ns", "response_time_ns", "time_ns", "first_time_ns")
"""
The first of these columns with a value gives the row's date.
"""


@dataclass(slots=True)
class _PartitionBuffer:
    batches: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0
    files: int = 0
    file: Any = None
    writer: pq.ParquetWriter | None = None
    open: ExitStack = field(default_factory=ExitStack)


class TableWriter:
    """
    Writes the rows of one task.

    Attributes:
        rows: Number of rows written, by table.
    """

    def __init__(
        self,
        folder: str,
        name: str,
        file_bytes: int | None = None,
        folders: Sequence[str] = FOLDERS,
    ) -> None:
        """
        Start.

        Args:
            folder: The folder of the tables.
            name: Files of this name appear in the tables' folders at the end of the `with`.
            file_bytes: Size from which on another file follows, `name-1`; None: none does.
            folders: The folders of each table; see `FOLDERS`.
        """
        self._folder = folder
        self._name = name
        self._file_bytes = file_bytes
        self._folders = folders
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
        rows = pa.Table.from_batches(buffer.batches).combine_chunks()
        rows = with_used_texts(in_order_of_apis(rows))
        if buffer.writer is None:
            name = f"{self._name}-{buffer.files}" if buffer.files else self._name
            path = join_path(self._folder, partition_path(table, partition, name, self._folders))
            buffer.file = buffer.open.enter_context(atomic_write(path))
            # By the index of pages a reader finds those with an API.
            writer = pq.ParquetWriter(
                buffer.file,
                rows.schema,
                compression="zstd",
                use_dictionary=_repeating(rows.schema),
                write_page_index=API in rows.schema.names,
                store_schema=False,  # it says whether rows had codes, which readers need not know
            )
            buffer.writer = buffer.open.enter_context(writer)
            buffer.files += 1
        buffer.writer.write_table(rows)
        if self._file_bytes is not None and buffer.file.tell() >= self._file_bytes:
            buffer.open.close()
            buffer.writer = None
        self._bytes -= buffer.bytes
        buffer.batches, buffer.rows, buffer.bytes = [], 0, 0


def _repeating(schema: pa.Schema) -> list[str]:
    """Return the columns with dictionaries, which are of no use where hardly a value is twice."""
    fields = (each for each in schema if not each.name.endswith(DISTINCT))
    return [leaf for each in fields for leaf in _leaves(each.name, each.type)]


def _leaves(name: str, kind: pa.DataType) -> list[str]:
    """Return the columns of Parquet that a column of Arrow becomes."""
    if pa.types.is_list(kind):
        return _leaves(f"{name}.list.element", kind.value_type)
    if pa.types.is_struct(kind):
        return [leaf for each in kind for leaf in _leaves(f"{name}.{each.name}", each.type)]
    return [name]


def partition_path(table: str, partition: str, name: str, folders: Sequence[str] = FOLDERS) -> str:
    """Return the path of a file in a partition by date, relative to the folder of the tables."""
    places = (partition if each == DATE else each for each in folders)
    return join_path(table, *filter(None, (*places, f"{name}.parquet")))


def partition_columns(columns: Sequence[str], folders: Sequence[str]) -> list[str]:
    """Return the columns that are in the folders of a table with these columns."""
    has_date = not {*TIMES}.isdisjoint(columns)
    return [each.partition("=")[0] for each in folders if has_date or each != DATE]


def in_order_of_apis(rows: pa.Table) -> pa.Table:
    """Return rows of a table in the order of their APIs, if they have any."""
    if API not in rows.schema.names:
        return rows
    apis = rows.column(API).combine_chunks().dictionary_encode()
    rank = np.empty(len(apis.dictionary) + 1, np.int64)
    rank[np.append(np.argsort(apis.dictionary.to_pylist()), len(apis.dictionary))] = np.arange(
        len(rank)
    )
    codes = rank[apis.indices.fill_null(len(apis.dictionary)).to_numpy(zero_copy_only=False)]
    return rows.take(pa.array(np.argsort(codes, kind="stable")))


def split_by_partition(batch: pa.RecordBatch) -> list[tuple[str, pa.RecordBatch]]:
    """Split rows by date: `date=2024-05-01` and its rows, in their order."""
    if not batch.num_rows:
        return []
    times = [batch.column(name) for name in TIMES if name in batch.schema.names]
    if not times:
        return [("", batch)]
    days, texts = _days(pc.coalesce(*times))
    places = [f"{DATE}={text}" for text in texts]
    if len(places) == 1:
        return [(places[0], batch)]
    # Copies, not slices: buffered rows must not keep the whole batch in memory.
    order = np.argsort(days, kind="stable")
    starts = np.searchsorted(days[order], np.arange(1, len(places)))
    both = zip(places, np.split(order, starts), strict=True)
    return [(place, batch.take(pa.array(rows))) for place, rows in both]


def _days(times: pa.Array) -> tuple[Int64s, list[str]]:
    """Return the index of each row's day, and the days."""
    numbers = times.fill_null(-DAY_NS).to_numpy(zero_copy_only=False) // DAY_NS
    days, codes = np.unique(numbers, return_inverse=True)
    return codes, [NULL_PARTITION if day < 0 else str(np.datetime64(int(day), "D")) for day in days]
