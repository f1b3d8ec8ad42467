from __future__ import annotations

import json
import math
from typing import Any
from uuid import UUID

import pytest
from construct import Container
from hypothesis import given
from hypothesis import strategies as st

from dissector.view.text.value_text import (
    bytes_text,
    json_text,
    jsonable,
    record_json,
    text_or_hex,
    time_ms_text,
    time_text,
)

ID = UUID("3f2504e0-4f89-11d3-9a0c-0305e82c3301")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (-1, -1),
        (1.5, 1.5),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
        (b"\x00\xab", "00ab"),
        (bytearray(b"\x01"), "01"),
        (ID, str(ID)),
        ("\udcff", "\udcff"),
        ([1, (b"\x02", None)], [1, ["02", None]]),
        (Container(a=Container(unknown_tags={77: b"\x0a"})), {"a": {"unknown_tags": {"77": "0a"}}}),
    ],
)
def test_jsonable(value: Any, expected: Any) -> None:
    assert jsonable(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": [1, None, True]}, '{"a": [1, null, true]}'),
        ({"a": "é\udcff\x1b\x9b\u202e"}, '{"a": "é\\udcff\\u001b\\u009b\\u202e"}'),
        ({"a": math.nan}, '{"a": "NaN"}'),
    ],
)
def test_json_text(value: Any, expected: str) -> None:
    assert json_text(value) == expected


decoded = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary()
    | st.uuids(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner),
)


@given(decoded)
def test_json_text_is_json_on_one_line_in_utf_8(value: Any) -> None:
    line = json_text(value)
    assert json.loads(line) == jsonable(value)
    assert "\n" not in line
    assert line.encode("utf-8")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (None, None),
        (b"", ""),
        ("é".encode(), "é"),
        (b"\xff\x00", {"hex": "ff00"}),
        ("***", "***"),
    ],
)
def test_text_or_hex(data: bytes | str | None, expected: Any) -> None:
    assert text_or_hex(data) == expected
    assert bytes_text(data) == (f"0x{expected['hex']}" if isinstance(expected, dict) else expected)


def test_a_row_of_records() -> None:
    row = {
        "offset": 3,
        "key": None,
        "value": b"\xff",
        "headers": [{"key": "h", "value": b"v"}, {"key": "g", "value": None}],
    }
    assert record_json(row) == {
        "offset": 3,
        "key": None,
        "value": {"hex": "ff"},
        "headers": [{"key": "h", "value": "v"}, {"key": "g", "value": None}],
    }


@pytest.mark.parametrize(
    ("time_ns", "expected"),
    [
        (0, "1970-01-01 00:00:00.000000000Z"),
        (1_700_000_000_000_000_001, "2023-11-14 22:13:20.000000001Z"),
        (-1, "1969-12-31 23:59:59.999999999Z"),
        (-62_135_596_800_000_000_000, "0001-01-01 00:00:00.000000000Z"),
        (-62_135_596_800_000_000_001, "-62135596800000000001 ns"),
        (253_402_300_800_000_000_000, "253402300800000000000 ns"),
        (2**63 * 1_000_000, f"{2**63 * 1_000_000} ns"),
    ],
)
def test_time_text(time_ns: int, expected: str) -> None:
    assert time_text(time_ns) == expected


@pytest.mark.parametrize(
    ("time_ms", "expected"),
    [(1_700_000_000_123, "2023-11-14 22:13:20.123Z"), (2**63 - 1, f"{2**63 - 1} ms")],
)
def test_time_ms_text(time_ms: int, expected: str) -> None:
    assert time_ms_text(time_ms) == expected
