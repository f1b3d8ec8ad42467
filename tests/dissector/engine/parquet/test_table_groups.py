from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.column_catalogue import CONNECTIONS, EXCHANGES, RECORDS, Catalogue, ColumnInfo
from dissector.engine.exchanges.exchange_records import record_rows
from dissector.engine.parquet.parquet_file import write_groups
from dissector.engine.parquet.parquet_types import TYPES, list_of, types_of
from dissector.engine.parquet.table_groups import Types, table_groups
from dissector.engine.tables import polars_tables
from dissector.engine.tables.column_types import Coded, Columns, Headers, Integers, Milliseconds
from dissector.engine.tables.columns_of import column_batches, columns_of, with_inserted
from dissector.engine.tables.exchange_table import NONE
from dissector.public import open_capture
from tests.corpus import each_capture
from tests.dissector.engine.parquet.test_parquet_file import rows_of, slices
from tests.example_counts import examples

PLAIN = {"str": "str", "int": "int", "flag": "bool"}
ALL: Types = {**TYPES, "structs": list_of(PLAIN)}


def written(parts: Iterable[Columns], types: Types) -> bytes:
    file = io.BytesIO()
    write_groups(table_groups(parts, types), types, file, {}, workers=1)
    return file.getvalue()


def values(name: str) -> st.SearchStrategy[Any]:
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
    number = st.integers(-(2**63) + 1, 2**63 - 1)
    maybe = {
        "str": text,
        "bytes": st.binary(max_size=5),
        "bool": st.booleans(),
        "int": number,
        "int32": st.integers(-(2**31), 2**31 - 1),
        "int16": st.integers(-(2**15), 2**15 - 1),
        "int8": st.integers(-128, 127),
        "float": st.floats(allow_nan=False),
        "strs": st.lists(st.none() | text, max_size=3),
        "headers": st.lists(
            st.fixed_dictionaries({"key": text, "value": st.none() | st.binary(max_size=3)}),
            max_size=3,
        ),
        "structs": st.lists(
            st.fixed_dictionaries(
                {"str": st.none() | text, "int": st.none() | number, "flag": st.booleans()}
            ),
            max_size=3,
        ),
    }
    return st.none() | maybe[name]


ROWS = st.lists(st.fixed_dictionaries({name: values(name) for name in ALL}), max_size=12)


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(ROWS, max_size=3))
def test_rows_of_every_type(parts: list[list[dict[str, Any]]]) -> None:
    groups = [columns for part in parts for columns in column_batches(part)]
    found = rows_of(written(groups, ALL))
    assert found == {name: [row[name] for part in parts for row in part] for name in ALL}


def test_rows_among_columns() -> None:
    types = types_of(
        [
            ColumnInfo(name, kind, "")
            for name, kind in (
                ("name", "str"),
                ("lists", "strs"),
                ("key", "int16"),
                ("number", "int"),
                ("ms", "float"),
                ("text", "str"),
                ("flag", "bool"),
                ("headers", "headers"),
            )
        ]
    )
    columns = {
        "name": Coded(np.array([0, NONE, 1]), ["a", "b\udcff"]),
        "lists": Coded(np.array([2, 0, NONE]), [["x", "y"], ["unused"], []]),
        "key": Coded(np.array([1, NONE, 0]), [3, -4]),
        "number": Integers(np.array([1, NONE, 2**62])),
        "ms": Milliseconds(np.array([1_500_000, NONE, 0])),
        "text": slices([b"t", None, b""]),
        "flag": Coded(np.array([0, 1, NONE]), [True, False]),
        "headers": Headers(
            np.array([0, 2, 2]),
            np.array([2, 0, 1]),
            slices([b"k", b"", b"m"]),
            slices([b"v", None, b""]),
        ),
    }
    row = {
        "name": "c",
        "lists": ["z", None],
        "key": 5,
        "number": -6,
        "ms": 0.25,
        "text": "w",
        "flag": None,
        "headers": [{"key": "é", "value": b"1"}],
    }
    apart = columns_of([row, {**row, "name": None}], {"number": Integers, "ms": Milliseconds})
    mixed = with_inserted(columns, np.array([0, 2]), apart)
    assert polars.DataFrame(rows_of(written([columns_of([row]), mixed], types))).rows() == [
        ("c", ["z", None], 5, -6, 0.25, "w", None, row["headers"]),
        ("c", ["z", None], 5, -6, 0.25, "w", None, row["headers"]),
        ("a", [], -4, 1, 1.5, "t", True, [*header(k=b"v"), {"key": "", "value": None}]),
        (None, ["x", "y"], None, None, None, None, False, []),
        (None, ["z", None], 5, -6, 0.25, "w", None, row["headers"]),
        ("b\\xff", None, 3, 2**62, 0.0, "", None, header(m=b"")),
    ]


def header(**values: bytes) -> list[dict[str, Any]]:
    return [{"key": key, "value": value} for key, value in values.items()]


@pytest.mark.thinned(3)
@each_capture("pairs")
def test_files_have_the_rows_of_tables(path: Path) -> None:
    capture = open_capture(path)
    pairs = polars.read_parquet(written(capture.parts(), types_of(EXCHANGES)))
    assert pairs.equals(polars.concat(capture.batches()))
    records = [
        part
        for window in capture.windows()
        for part in capture.record_parts(window, lambda topic: False, record_rows)
    ]
    table = polars.read_parquet(written(records, types_of(RECORDS)))
    assert table.equals(polars.concat([table.clear(), *capture.record_batches()]))


@pytest.mark.parametrize(
    ("columns", "schema"),
    [
        (EXCHANGES, polars_tables.exchange_schema),
        (RECORDS, polars_tables.record_schema),
        (CONNECTIONS, polars_tables.connection_schema),
    ],
)
def test_files_have_the_types_of_tables(columns: Catalogue, schema: Any) -> None:
    assert polars.read_parquet(written([], types_of(columns))).schema == dict(schema())
    assert list(types_of(columns, ["api", "other"], ["body"])) == ["api", "other"]
    assert list(types_of(columns, [], ["body"]))[-1] == "body"
