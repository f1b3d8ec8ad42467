"""Rows with codes in place of texts are those with the texts, in files too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dissector.engine.tables.column_types import Coded, Integers
from dissector.engine.tables.exchange_table import NONE
from dissector.engine.tables.polars_tables import exchange_schema
from pipeline.storage.parquet_store import TableWriter
from pipeline.storage.text_codes import plain_rows
from pipeline.tables.coded_rows import coded_rows
from pipeline.tables.table_schemas import SCHEMAS

NAMES = ("api", "client_id", "topics", "request_time_ns", "principal")
SCHEMA = pa.schema([SCHEMAS["exchanges"].field(name) for name in NAMES])
KINDS = {name: kind for name, kind in exchange_schema(logs=True).items() if name in NAMES}


def _rows(ids: list[str | None], codes: list[int]) -> pa.RecordBatch:
    """Return rows with these client ids; some APIs and topics."""
    count = len(codes)
    columns = {
        "api": Coded(np.arange(count) % 2, ("Produce", "Fetch")),
        "client_id": Coded(np.array(codes), ids),
        "topics": Coded(np.where(np.arange(count) % 3, 0, NONE), (["a", "b"],)),
        "request_time_ns": Integers(np.arange(count)),
    }
    return coded_rows(columns, SCHEMA, KINDS)


def _expected(ids: list[str | None], codes: list[int]) -> list[dict[str, object]]:
    return [
        {
            "api": ("Produce", "Fetch")[row % 2],
            "client_id": None if code == NONE else ids[code],
            "topics": ["a", "b"] if row % 3 else None,
            "request_time_ns": row,
            "principal": None,
        }
        for row, code in enumerate(codes)
    ]


def test_rows_have_the_texts_of_their_codes() -> None:
    ids, codes = ["one", None, "***", "two", "***"], [4, 2, 1, NONE, 0, 4, 3]
    rows = plain_rows(_rows(ids, codes))
    assert rows.schema == SCHEMA
    assert rows.to_pylist() == _expected(ids, codes)


def test_files_have_the_texts_of_all_batches_and_no_others(tmp_path: Path) -> None:
    batches = [(["one", "***", "secret", "***"], [3, 0, 1, NONE]), (["two", "one"], [1, 0, 1])]
    with TableWriter(str(tmp_path), "7") as store:
        for ids, codes in batches:
            store.add("exchanges", _rows(ids, codes))
    [path] = tmp_path.rglob("*.parquet")
    file = pq.ParquetFile(path)
    expected = [row for ids, codes in batches for row in _expected(ids, codes)]
    assert file.read().to_pylist() == sorted(expected, key=lambda row: str(row["api"]))
    assert file.schema_arrow.equals(SCHEMA)
    assert b"secret" not in path.read_bytes()
    found = file.metadata.row_group(0).column(1).statistics
    assert (found.min, found.max) == ("***", "two")
