from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dissector.engine.tables.column_types import (
    Coded,
    Headers,
    Integers,
    Milliseconds,
    SliceBuffers,
    Slices,
    distinct,
    row_dict,
)
from dissector.engine.tables.exchange_table import NONE

BUFFERS = SliceBuffers(*(np.frombuffer(text, np.uint8) for text in (b"data", b"held", b"arena")))


def ints(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, np.int64)


def test_values_of_a_row() -> None:
    columns = {
        "coded": Coded(ints(1, NONE), ["a", ["b"]]),
        "number": Integers(ints(7, NONE)),
        "lag": Milliseconds(ints(1_500_000, NONE)),
    }
    assert row_dict(columns, 0) == {"coded": ["b"], "number": 7, "lag": 1.5}
    assert row_dict(columns, 1) == {"coded": None, "number": None, "lag": None}
    assert {len(column) for column in columns.values()} == {2}


def test_slices_of_three_buffers() -> None:
    slices = Slices(ints(1, 4, 8, 12, NONE), ints(3, 4, 0, 1, 0), BUFFERS)
    assert [slices.value(row) for row in range(len(slices))] == [b"ata", b"held", b"", b"a", None]


def test_headers() -> None:
    keys, values = (
        Slices(ints(0, 4), ints(1, 1), BUFFERS),
        Slices(ints(5, NONE), ints(2, 0), BUFFERS),
    )
    headers = Headers(ints(0, 0, 2), ints(0, 2, 0), keys, values)
    expected = [{"key": "d", "value": b"el"}, {"key": "h", "value": None}]
    assert [headers.value(row) for row in range(len(headers))] == [[], expected, []]


@given(st.lists(st.integers(-(2**62), 2**62) | st.integers(-5, 5)))
def test_distinct_values(values: list[int]) -> None:
    places, found = distinct(np.array(values, np.int64))
    assert found.tolist() == sorted(set(values))
    assert found[places].tolist() == values
