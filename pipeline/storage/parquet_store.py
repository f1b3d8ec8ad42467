"""
Tables as Parquet, a folder for each day and each API.

    OUT/exchanges/date=2024-05-01/api=Produce/00012.parquet

Rows are written by whoever made them: Java would take them one by one, which takes longer than to
dissect them.
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
"""What Hive, and Spark after it, call the folder of null."""

GROUP_ROWS = 1 << 17
"""About how many rows are written at a time."""

MAX_BUFFERED_BYTES = 32 << 20
"""About how many bytes of rows wait in all tables, days and APIs together."""

DATE, API = "date", "api"

TIMES = ("request_time_ns", "response_time_ns", "time_ns", "first_time_ns")
"""The first of these that a table has, and that is not null in a row, gives the row's date."""


@dataclass(slots=True)
class _Waiting:
    batches: list[pa.RecordBatch] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0
    writer: pq.ParquetWriter | None = None


class TableWriter:
    """
    Writes the rows of one task.

    Attributes:
        rows: How many were written, table by table.
    """

    def __init__(self, folder: str, name: str) -> None:
        """Begin; files of this name appear in the folders of the tables when the store is left."""
        self._folder = folder
        self._name = name
        self._waiting: dict[tuple[str, str], _Waiting] = {}
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
            for key in self._waiting:
                self._flush(*key)
        self._open.__exit__(kind, error, trace)

    def add(self, table: str, batch: pa.RecordBatch) -> None:
        """Take rows of a table."""
        self.rows[table] = self.rows.get(table, 0) + batch.num_rows
        for place, rows in split_by_partition(batch):
            waiting = self._waiting.setdefault((table, place), _Waiting())
            waiting.batches.append(rows)
            waiting.rows += rows.num_rows
            waiting.bytes += rows.nbytes
            self._bytes += rows.nbytes
            if waiting.rows >= GROUP_ROWS:
                self._flush(table, place)
        while self._bytes > MAX_BUFFERED_BYTES:
            self._flush(*max(self._waiting, key=lambda key: self._waiting[key].bytes))

    def _flush(self, table: str, place: str) -> None:
        waiting = self._waiting[table, place]
        if not waiting.rows:
            return
        if waiting.writer is None:
            path = partition_path(table, place, self._name)
            file = self._open.enter_context(atomic_write(join_path(self._folder, path)))
            schema = waiting.batches[0].schema
            writer = pq.ParquetWriter(file, schema, compression="zstd")
            waiting.writer = self._open.enter_context(writer)
        waiting.writer.write_table(pa.Table.from_batches(waiting.batches))
        self._bytes -= waiting.bytes
        waiting.batches, waiting.rows, waiting.bytes = [], 0, 0


def partition_path(table: str, place: str, name: str) -> str:
    """Return the path, in the folder of the tables, of the file of this name in a place."""
    return join_path(table, *filter(None, (place, f"{name}.parquet")))


def split_by_partition(batch: pa.RecordBatch) -> list[tuple[str, pa.RecordBatch]]:
    """Divide rows by date and API: `date=2024-05-01/api=Fetch` and its rows, in their order."""
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
    return list(_divided(batch, keys))


def _days(times: pa.Array) -> tuple[Any, list[str]]:
    numbers = times.fill_null(-DAY_NS).to_numpy(zero_copy_only=False) // DAY_NS
    days, codes = np.unique(numbers, return_inverse=True)
    return codes, [NULL_PARTITION if day < 0 else str(np.datetime64(int(day), "D")) for day in days]


def _divided(
    batch: pa.RecordBatch, keys: list[tuple[str, Any, Sequence[str]]]
) -> list[tuple[str, pa.RecordBatch]]:
    if not batch.num_rows:
        return []
    whole = np.zeros(batch.num_rows, np.int64)
    for _, codes, texts in keys:
        whole = whole * len(texts) + codes
    order = np.argsort(whole, kind="stable")
    found, starts = np.unique(whole[order], return_index=True)
    if len(found) == 1:
        return [(_place(int(found[0]), keys), batch)]
    # Copies, not slices: what waits must not keep all that came with it.
    return [
        (_place(int(each), keys), batch.take(pa.array(rows)))
        for each, rows in zip(found, np.split(order, starts[1:]), strict=True)
    ]


def _place(code: int, keys: list[tuple[str, Any, Sequence[str]]]) -> str:
    words: list[str] = []
    for name, _, texts in reversed(keys):
        code, at = divmod(code, len(texts))
        words.insert(0, f"{name}={texts[at]}")
    return "/".join(words)
