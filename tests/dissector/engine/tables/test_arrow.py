"""Columns of bytes passed to polars."""

from __future__ import annotations

import gc
import subprocess
import sys

import numpy as np
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.engine.tables import arrow
from dissector.engine.tables.arrow import bytes_series, headers_series
from dissector.engine.tables.column_types import Headers, SliceBuffers, Slices
from dissector.engine.tables.exchange_table import NONE
from tests.kernel_modes import both

mode = both(arrow)

VALUES = st.lists(st.none() | st.binary(max_size=30))
HEADER = st.tuples(st.text("abc\x7f", max_size=20), st.none() | st.binary(max_size=30))
SCHEMA = polars.List(polars.Struct({"key": polars.String(), "value": polars.Binary()}))


def slices(values: list[bytes | None]) -> Slices:
    """Return a column with bytes in all three buffers."""
    lengths = np.array([len(value or b"") for value in values], np.int64)
    starts = np.cumsum(lengths) - lengths
    third = len(values) // 3
    parts = values[:third], values[third : 2 * third], values[2 * third :]
    pieces = (b"".join(value or b"" for value in part) for part in parts)
    buffers = SliceBuffers(*(np.frombuffer(piece, np.uint8) for piece in pieces))
    null = np.array([value is None for value in values], np.bool_)
    return Slices(np.where(null, NONE, starts), lengths, buffers)


def headers(rows: list[list[tuple[str, bytes | None]]]) -> Headers:
    flat = [header for row in rows for header in row]
    counts = np.array([len(row) for row in rows], np.int64)
    keys = slices([key.encode() for key, _ in flat])
    values = slices([value for _, value in flat])
    return Headers(np.cumsum(counts) - counts, counts, keys, values)


@given(VALUES)
def test_bytes(values: list[bytes | None]) -> None:
    series = bytes_series(slices(values))
    assert series.dtype == polars.Binary
    assert series.to_list() == values
    assert polars.concat([series, series]).to_list() == values * 2


@given(st.lists(st.lists(HEADER, max_size=4)), st.integers(0, 3))
def test_headers(rows: list[list[tuple[str, bytes | None]]], skipped: int) -> None:
    whole = headers(rows)
    part = Headers(whole.first[skipped:], whole.count[skipped:], whole.keys, whole.values)
    series = headers_series(part)
    assert series is not None
    assert series.dtype == SCHEMA
    assert series.to_list() == [
        [{"key": key, "value": value} for key, value in row] for row in rows[skipped:]
    ]


def test_keys_with_invalid_utf8_are_left() -> None:
    assert headers_series(headers([[("\u00e4", b"")]])) is None


@pytest.mark.thinned(2)
def test_memory_is_released_with_the_series() -> None:
    before = arrow.exported_count()
    series = bytes_series(slices([b"a" * 100] * 1000))
    lists = headers_series(headers([[("k", b"v")]] * 100))
    assert series.to_list()[-1] == b"a" * 100
    del series, lists
    gc.collect()
    assert arrow.exported_count() == before


OUTLIVES_US = """
import gc, sys
import numpy as np
from dissector.engine.tables import arrow
kept = arrow.integers_series(np.arange(5), None)
vars(arrow).clear()
del arrow
for name in [name for name in sys.modules if name.startswith("dissector")]:
    del sys.modules[name]
gc.collect()
del kept
print("ended")
"""


@pytest.mark.thinned(2)
def test_a_series_may_outlive_our_modules() -> None:
    """As at the end of the interpreter, which destroys modules first."""
    ended = subprocess.run([sys.executable, "-c", OUTLIVES_US], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "ended\n"), ended.stderr
