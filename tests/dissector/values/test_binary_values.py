"""CBOR and MessagePack, against the examples of RFC 8949 and the specification."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.values.binary_values import cbor_value, msgpack_value
from dissector.values.value_limits import ValueProblem
from tests.example_counts import examples


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("00", 0),
        ("17", 23),
        ("1818", 24),
        ("1903e8", 1000),
        ("1bffffffffffffffff", 2**64 - 1),
        ("c249010000000000000000", 2**64),
        ("3bffffffffffffffff", -(2**64)),
        ("c349010000000000000000", -(2**64) - 1),
        ("20", -1),
        ("3903e7", -1000),
        ("f93c00", 1.0),
        ("f97bff", 65504.0),
        ("fb3ff199999999999a", 1.1),
        ("fa7f7fffff", 3.4028234663852886e38),
        ("f97c00", "Infinity"),
        ("f97e00", "NaN"),
        ("f4", False),
        ("f5", True),
        ("f6", None),
        ("f7", None),
        ("f0", 16),
        ("f8ff", 255),
        ("c074323031332d30332d32315432303a30343a30305a", "2013-03-21T20:04:00Z"),
        ("c11a514b67b0", "2013-03-21T20:04:00Z"),
        ("c1fb41d452d9ec200000", "2013-03-21T20:04:00.500000Z"),
        ("d74401020304", "01020304"),
        ("d818456449455446", "6449455446"),
        ("d9d9f701", 1),
        ("d8255000112233445566778899aabbccddeeff", "00112233-4455-6677-8899-aabbccddeeff"),
        ("62c3bc", "ü"),
        ("8301820203820405", [1, [2, 3], [4, 5]]),
        ("a201020304", {"1": 2, "3": 4}),
        ("a26161016162820203", {"a": 1, "b": [2, 3]}),
        ("5f42010243030405ff", "0102030405"),
        ("7f657374726561646d696e67ff", "streaming"),
        ("9f018202039f0405ffff", [1, [2, 3], [4, 5]]),
        ("bf6161019f0203ffff"[:8] + "61629f0203ffff", {"a": 1, "b": [2, 3]}),
        ("a1820102f5", {"[1, 2]": True}),
    ],
)
def test_cbor(data: str, value: Any) -> None:
    assert cbor_value(bytes.fromhex(data)) == value


@pytest.mark.parametrize(
    ("data", "value"),
    [
        ("05", 5),
        ("ff", -1),
        ("c0", None),
        ("c2", False),
        ("c3", True),
        ("ccff", 255),
        ("cd0100", 256),
        ("cfffffffffffffffff", 2**64 - 1),
        ("d0ff", -1),
        ("d38000000000000000", -(2**63)),
        ("ca3f800000", 1.0),
        ("cb7ff0000000000000", "Infinity"),
        ("a3616263", "abc"),
        ("d902c3bc", "ü"),
        ("da000161", "a"),
        ("c40201ff", "01ff"),
        ("c5000101", "01"),
        ("9301c0a0", [1, None, ""]),
        ("dc000201c3", [1, True]),
        ("82a7636f6d70616374c3a6736368656d6100", {"compact": True, "schema": 0}),
        ("de00010502", {"5": 2}),
        ("d6ff00000001", "1970-01-01T00:00:01Z"),
        ("d7ff00000004 00000002", "1970-01-01T00:00:02.000000001Z"),
        ("c70cff 00000000 ffffffffffffffff", "1969-12-31T23:59:59Z"),
        ("d40501", {"type": 5, "data": "01"}),
        ("c703fb010203", {"type": -5, "data": "010203"}),
    ],
)
def test_msgpack(data: str, value: Any) -> None:
    assert msgpack_value(bytes.fromhex(data)) == value


@pytest.mark.parametrize(
    ("read", "data", "reason"),
    [
        (cbor_value, "", "ends inside"),
        (cbor_value, "ff", "end of a list"),
        (cbor_value, "82ff01", "end of a list"),
        (cbor_value, "9bffffffffffffffff", "ends inside"),
        (cbor_value, "5bffffffffffffffff00", "ends inside"),
        (cbor_value, "1c", "no item"),
        (cbor_value, "1f", "no item"),
        (cbor_value, "7f01ff", "no piece"),
        (cbor_value, "bf01ff", "without its last value"),
        (cbor_value, "0000", "1 bytes behind"),
        (cbor_value, "61ff", "not UTF-8"),
        (cbor_value, "81" * 5000, "nested deeper"),
        (cbor_value, "9f" * 5000, "nested deeper"),
        (cbor_value, "c1" * 5000, "nested deeper"),
        (msgpack_value, "", "ends inside"),
        (msgpack_value, "c1", "no object"),
        (msgpack_value, "ddffffffff", "ends inside"),
        (msgpack_value, "c6ffffffff00", "ends inside"),
        (msgpack_value, "a1ff", "not UTF-8"),
        (msgpack_value, "0000", "1 bytes behind"),
        (msgpack_value, "91" * 5000, "nested deeper"),
        (msgpack_value, "8100" * 5000, "nested deeper"),
    ],
)
def test_damaged_values(read: Callable[[bytes], Any], data: str, reason: str) -> None:
    with pytest.raises(ValueProblem, match=reason):
        read(bytes.fromhex(data))


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text() | st.floats(width=64),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def packed(value: Any) -> bytes:
    """Return a value in MessagePack."""
    match value:
        case None | False | True:
            return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
        case int():
            return b"\xd3" + struct.pack(">q", value)
        case float():
            return b"\xcb" + struct.pack(">d", value)
        case str():
            return b"\xdb" + struct.pack(">I", len(value.encode())) + value.encode()
        case list():
            return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(packed, value))
    pairs = b"".join(packed(key) + packed(each) for key, each in value.items())
    return b"\xdf" + struct.pack(">I", len(value)) + pairs


@given(value=values.filter(lambda each: "inf" not in repr(each) and "nan" not in repr(each)))
def test_any_value_in_messagepack(value: Any) -> None:
    assert msgpack_value(packed(value)) == value


@given(data=st.binary(max_size=200))
def test_hostile_bytes_raise_problems_only(data: bytes) -> None:
    hostile(data)


def hostile(data: bytes) -> None:
    for read in (cbor_value, msgpack_value):
        try:
            json.dumps(read(data))
        except ValueProblem:
            continue


@pytest.mark.long
def test_many_hostile_bytes() -> None:
    random = Random(5)
    for _ in range(examples(100) * 2000):
        hostile(random.randbytes(random.randrange(60)))
