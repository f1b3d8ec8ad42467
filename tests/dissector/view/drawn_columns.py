"""Columns of every kind, drawn by Hypothesis, for tests of writers."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from dissector.engine.tables.column_types import (
    Coded,
    Columns,
    Headers,
    Integers,
    Milliseconds,
    SliceBuffers,
    Slices,
)
from dissector.engine.tables.exchange_table import NONE

INT64 = st.integers(NONE, 2**63 - 1)
NEAR_NONE = st.integers(NONE, NONE + 2**41)
SMALL = st.integers(-200, 200)
TEXT = st.text(st.characters()) | st.text('abc ,"\\\n;é日\x1b', max_size=8)
VALUES = TEXT | st.none() | st.booleans() | SMALL | st.lists(TEXT, max_size=3)
BYTES = st.binary(max_size=12) | TEXT.map(lambda text: text.encode("utf-8", "surrogatepass"))

LEFT_TO_PYTHON = [
    b"\xe2\x82\xac",
    b"\xed\xa0\x80",
    b"\xf0\x9f\xa6\x88",
    b"\xf4\x90\x80\x80",
    b"\xc2\x9f",
]
EDGES = st.sampled_from(
    [*LEFT_TO_PYTHON, b"\xc0\x80", b"\xe2\x80\xae", b"\xd8\x9c", b"\xe2\x82", b"\x7f"]
)


def ints(values: list[int]) -> Any:
    return np.array(values, np.int64)


@st.composite
def coded(draw: st.DrawFn, count: int) -> Coded:
    values = draw(st.lists(VALUES, min_size=1, max_size=4))
    code = st.integers(0, len(values) - 1) | st.just(NONE)
    return Coded(ints(draw(st.lists(code, min_size=count, max_size=count))), values)


@st.composite
def numbers(draw: st.DrawFn, count: int) -> Any:
    number = INT64 | NEAR_NONE | SMALL | st.sampled_from([1_000_000, 1_500_000, 999_999, 10**15])
    return ints(draw(st.lists(number, min_size=count, max_size=count)))


class _Bytes:
    """Distributes byte strings over three buffers."""

    def __init__(self) -> None:
        self.laid: list[tuple[int, bytes | None]] = []

    def add(self, draw: st.DrawFn, count: int, *, null: bool) -> range:
        content = st.builds(b"".join, st.lists(BYTES | EDGES, max_size=3))
        some = content | st.none() if null else content
        first = len(self.laid)
        for _ in range(count):
            self.laid.append((draw(st.integers(0, 2)), draw(some)))
        return range(first, first + count)

    def slices(self, *of: range) -> list[Slices]:
        filled = [bytearray(b"\xff"), bytearray(), bytearray()]
        places = []
        for which, content in self.laid:
            places.append(len(filled[which]))
            filled[which] += content or b""
        sizes = [0, len(filled[0]), len(filled[0]) + len(filled[1])]
        buffers = SliceBuffers(*(np.frombuffer(bytes(each), np.uint8) for each in filled))
        start = [
            NONE if content is None else place + sizes[which]
            for (which, content), place in zip(self.laid, places, strict=True)
        ]
        length = [len(content or b"") for _, content in self.laid]
        return [
            Slices(ints([start[i] for i in each]), ints([length[i] for i in each]), buffers)
            for each in of
        ]


@st.composite
def any_columns(draw: st.DrawFn, *, records: bool = False, max_rows: int = 6) -> Columns:
    """Draw columns of all kinds; `records` adds those of records."""
    count = draw(st.integers(1, max_rows))
    shared = draw(coded(count))
    table: dict[str, Any] = {
        "number": Integers(draw(numbers(count))),
        'na"me': shared,
        "like it": Coded(shared.codes, draw(st.permutations(shared.values))),
        "same_time_ns": Integers(draw(numbers(count))),
        "lag_ms": Milliseconds(draw(numbers(count))),
        "last": draw(coded(count)),
    }
    if records:
        table |= draw(_record_columns(count))
    names = draw(st.permutations(list(table)))
    return {name: table[name] for name in names}


@st.composite
def _record_columns(draw: st.DrawFn, count: int) -> dict[str, Any]:
    laid = _Bytes()
    has = draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    key = laid.add(draw, count, null=True)
    value = laid.add(draw, count, null=True)
    header_keys = laid.add(draw, sum(has), null=False)
    header_values = laid.add(draw, sum(has), null=True)
    slices = laid.slices(key, value, header_keys, header_values)
    first = ints([sum(has[:row]) for row in range(count)])
    headers = Headers(first, ints(has), slices[2], slices[3])
    return {"key": slices[0], "value": slices[1], "headers": headers}
