from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dissector.engine.parquet import page_kernels
from dissector.engine.parquet.parquet_file import write_groups
from dissector.engine.parquet.parquet_types import TYPES
from dissector.engine.parquet.row_groups import LEAST_ROWS, Column, Names, Numbers, RowGroup, Texts
from dissector.engine.tables import dictionaries
from dissector.engine.tables.column_types import SliceBuffers, Slices
from dissector.engine.tables.exchange_table import NONE
from tests.example_counts import examples
from tests.kernel_modes import both

mode = both(page_kernels, dictionaries)

KINDS = {
    "small": "int8",
    "short": "int16",
    "middle": "int32",
    "long": "int",
    "real": "float",
    "name": "str",
    "text": "str",
    "raw": "bytes",
}


def slices(values: list[bytes | None]) -> Slices:
    """Lay values into three buffers in turn."""
    buffers: list[bytearray] = [bytearray(), bytearray(), bytearray()]
    places = []
    for number, value in enumerate(values):
        buffer = number % 3
        places.append(None if value is None else (buffer, len(buffers[buffer]), len(value)))
        buffers[buffer] += value or b""
    first = [0, len(buffers[0]), len(buffers[0]) + len(buffers[1])]
    return Slices(
        np.array([NONE if at is None else first[at[0]] + at[1] for at in places], np.int64),
        np.array([0 if at is None else at[2] for at in places], np.int64),
        SliceBuffers(*(np.frombuffer(bytes(each), np.uint8) for each in buffers)),
    )


def numbers(values: list[int | float | None], dtype: Any, repeats: list[int] | None) -> Numbers:
    return Numbers(
        np.array([0 if each is None else each for each in values], dtype),
        np.array([each is not None for each in values]),
        None if repeats is None else np.array(repeats, np.int64),
    )


def names(values: list[str | None], repeats: list[int] | None) -> Names:
    texts = sorted({*values, "unused"} - {None}, key=str)
    codes = [NONE if each is None else texts.index(each) for each in values]
    return Names(
        np.array(codes, np.int64), texts, None if repeats is None else np.array(repeats, np.int64)
    )


def written(groups: Iterable[RowGroup], types: Mapping[str, str]) -> bytes:
    file = io.BytesIO()
    write_groups(
        groups,
        {name: TYPES[kind] for name, kind in types.items()},
        file,
        {"made by": "a test"},
        workers=1,
    )
    return file.getvalue()


def rows_of(file: bytes) -> dict[str, list[Any]]:
    """Read a file by polars; pyarrow, where it is installed, must agree."""
    rows: dict[str, list[Any]] = polars.read_parquet(io.BytesIO(file)).to_dict(as_series=False)
    try:
        from pyarrow import BufferReader, parquet
    except ModuleNotFoundError:
        return rows
    assert parquet.read_table(BufferReader(file)).to_pydict() == rows
    return rows


@st.composite
def tables(draw: st.DrawFn) -> tuple[RowGroup, dict[str, list[Any]]]:
    """Draw columns with repeated rows, and the rows of the file."""
    repeats = draw(st.lists(st.one_of(st.integers(0, 3), st.integers(0, 90)), max_size=30))
    total = sum(repeats)
    wide = draw(st.booleans())

    def values(strategy: st.SearchStrategy[Any], count: int) -> list[Any]:
        few = draw(st.lists(st.one_of(st.none(), strategy), min_size=1, max_size=count + 1))
        return draw(st.lists(st.sampled_from(few), min_size=count, max_size=count))

    columns: dict[str, Column] = {}
    rows: dict[str, list[Any]] = {}
    for name, bits, dtype in (
        ("small", 7, np.int64),
        ("short", 15, np.int64),
        ("middle", 31, np.int32),
        ("long", 63, np.int64),
    ):
        least = 1 - 2**bits if bits == 63 else -(2**bits)
        repeated = name != "middle" or wide
        own = values(st.integers(least, 2**bits - 1), len(repeats) if repeated else total)
        columns[name] = numbers(own, dtype, repeats if repeated else None)
        rows[name] = spread(own, repeats) if repeated else own
    own = values(st.floats(allow_nan=False), total)
    columns["real"], rows["real"] = numbers(own, np.float64, None), own
    own = values(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), len(repeats))
    columns["name"], rows["name"] = names(own, repeats), spread(own, repeats)
    own = values(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), total)
    encoded = [None if each is None else each.encode() for each in own]
    columns["text"], rows["text"] = Texts(slices(encoded)), own
    own = values(st.binary(max_size=70), total)
    columns["raw"], rows["raw"] = Texts(slices(own)), own
    return RowGroup(total, columns), rows


def spread(values: list[Any], repeats: list[int]) -> list[Any]:
    return [each for each, count in zip(values, repeats, strict=True) for _ in range(count)]


@pytest.mark.thinned(2)
@given(st.lists(tables(), max_size=3))
@settings(max_examples=examples(60))
def test_readers_find_the_written_rows(drawn: list[tuple[RowGroup, dict[str, list[Any]]]]) -> None:
    file = written([group for group, _ in drawn], KINDS)
    assert rows_of(file) == {
        name: [value for _, rows in drawn for value in rows[name]] for name in KINDS
    }


@pytest.mark.thinned(9)
@pytest.mark.parametrize("distinct", [1, 2, 3, 255, 256, 257, 1 << 14, (1 << 14) + 1, 40_000])
def test_any_number_of_distinct_values(distinct: int, mode: str) -> None:
    rows = LEAST_ROWS + 3 if mode == "python" else 50_000
    values = [number * 7919 % distinct * 1_000_003 for number in range(rows)]
    texts = [f"text {value}".encode() if value % 5 else None for value in values]
    group = RowGroup(
        rows,
        {
            "long": Numbers(np.array(values, np.int64)),
            "middle": Numbers(np.array(values, np.int64).astype(np.int32)),
            "text": Texts(slices(texts)),
        },
    )
    found = rows_of(written([group], {"long": "int", "middle": "int32", "text": "str"}))
    assert found["long"] == values
    assert found["middle"] == np.array(values, np.int64).astype(np.int32).tolist()
    assert found["text"] == [None if each is None else each.decode() for each in texts]


def test_without_rows() -> None:
    frame = polars.read_parquet(io.BytesIO(written([], KINDS)))
    assert frame.shape == (0, len(KINDS))
    assert dict(frame.schema) == {
        "small": polars.Int8(),
        "short": polars.Int16(),
        "middle": polars.Int32(),
        "long": polars.Int64(),
        "real": polars.Float64(),
        "name": polars.String(),
        "text": polars.String(),
        "raw": polars.Binary(),
    }


def test_only_small_groups_are_joined(tmp_path: Path) -> None:
    sizes = [10, 20, LEAST_ROWS, LEAST_ROWS, 5, 6]
    groups = [RowGroup(rows, {"n": Numbers(np.arange(rows))}) for rows in sizes]
    path = tmp_path / "rows.parquet"
    path.write_bytes(written(groups, {"n": "int"}))
    assert polars.read_parquet(path)["n"].to_list() == [n for rows in sizes for n in range(rows)]
    parquet = pytest.importorskip("pyarrow.parquet")
    metadata = parquet.ParquetFile(path).metadata
    counts = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    assert counts == [LEAST_ROWS + 30, LEAST_ROWS, 11]


def test_bounds_let_readers_skip_groups() -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    from pyarrow import BufferReader

    columns: dict[str, Column] = {
        "long": numbers([5, None, -3], np.int64, [1, 1, 2]),
        "name": names(["b", "a", None], [1, 2, 1]),
        "text": Texts(slices([b"x" * 65, b"y", b"z", None])),
        "real": numbers([None] * 4, np.float64, None),
    }
    types = {"long": "int", "name": "str", "text": "str", "real": "float"}
    group = parquet.ParquetFile(BufferReader(written([RowGroup(4, columns)], types))).metadata
    found = [group.row_group(0).column(number).statistics for number in range(len(types))]
    assert [(each.has_min_max, each.null_count) for each in found] == [
        (True, 1),
        (True, 1),
        (False, 1),
        (False, 4),
    ]
    assert [(each.min, each.max) for each in found[:2]] == [(-3, 5), ("a", "b")]


def test_numbers_made_to_have_equal_hashes_have_others_in_another_process() -> None:
    """Else the rows of such a capture would cost as much as it has distinct numbers, each."""
    slots: dict[int, list[int]] = {}
    for number in range(20_000):
        slots.setdefault(page_kernels.hash_of_number(number, 1) & 255, []).append(number)
    equal = max(slots.values(), key=len)
    others = Counter(page_kernels.hash_of_number(number, 2) & 255 for number in equal)
    assert len(equal) > 50
    assert max(others.values()) < 10
