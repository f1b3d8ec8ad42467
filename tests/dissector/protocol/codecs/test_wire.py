"""Kafka's primitive types: one table of values and bytes, read in both directions."""

from __future__ import annotations

import io
import math
from typing import Any
from uuid import UUID

import pytest
from construct import Construct, Container
from hypothesis import given
from hypothesis import strategies as st

from dissector.errors import DecodeError, EncodeError
from dissector.protocol.codecs import wire
from dissector.protocol.codecs.structs import (
    Fields,
    Member,
    Nullable,
    NullableTagged,
    TaggedFields,
)
from dissector.protocol.codecs.wire import (
    Bytes,
    CountedArray,
    Text,
    boolean,
    compact_length,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint16,
    uint32,
    unsigned_varint,
    uuid16,
)

STRING, COMPACT_STRING = Text(int16), Text(compact_length)
BYTES, COMPACT_BYTES = Bytes(int32), Bytes(compact_length)
ARRAY, COMPACT_ARRAY = CountedArray(int32, int16), CountedArray(compact_length, STRING)
POINT = Fields([Member("x", int8), Member("y", int8, 7)])
FLEXIBLE = Fields(
    [Member("x", int8)],
    TaggedFields({1: Member("rack", COMPACT_STRING, "r"), 0: Member("racks", COMPACT_ARRAY, list)}),
)
LONGEST = "ab" * 16383 + "c"
ID = UUID("00112233-4455-6677-8899-aabbccddeeff")

# Construct, value, bytes.
CASES: list[tuple[Construct, Any, str]] = [
    (int8, 0, "00"),
    (int8, 127, "7f"),
    (int8, -128, "80"),
    (int16, 32767, "7fff"),
    (int16, -32768, "8000"),
    (int16, -1, "ffff"),
    (int32, 2**31 - 1, "7fffffff"),
    (int32, -(2**31), "80000000"),
    (int64, 2**63 - 1, "7fffffffffffffff"),
    (int64, -(2**63), "8000000000000000"),
    (uint16, 65535, "ffff"),
    (uint32, 2**32 - 1, "ffffffff"),
    (float64, 0.0, "0000000000000000"),
    (float64, -1.5, "bff8000000000000"),
    (float64, math.inf, "7ff0000000000000"),
    (boolean, False, "00"),
    (boolean, True, "01"),
    # Not a boolean for Kafka, but the byte is preserved.
    (boolean, 2, "02"),
    (boolean, 255, "ff"),
    (uuid16, ID, "00112233445566778899aabbccddeeff"),
    (uuid16, UUID(int=0), "00" * 16),
    (unsigned_varint, 0, "00"),
    (unsigned_varint, 0x7F, "7f"),
    (unsigned_varint, 0x80, "8001"),
    (unsigned_varint, 0x3FFF, "ff7f"),
    (unsigned_varint, 0x4000, "808001"),
    (unsigned_varint, 0x1FFFFF, "ffff7f"),
    (unsigned_varint, 0x200000, "80808001"),
    (unsigned_varint, 0xFFFFFFF, "ffffff7f"),
    (unsigned_varint, 0x10000000, "8080808001"),
    (unsigned_varint, 2**32 - 1, "ffffffff0f"),
    (compact_length, -1, "00"),
    (compact_length, 0, "01"),
    (compact_length, 126, "7f"),
    (compact_length, 127, "8001"),
    (STRING, "", "0000"),
    (STRING, None, "ffff"),
    (STRING, "grün", "0005 6772c3bc6e"),
    (STRING, LONGEST, "7fff" + LONGEST.encode().hex()),
    # Invalid UTF-8 is kept as surrogates.
    (STRING, "a\udcff\udcc3", "0003 61ffc3"),
    (COMPACT_STRING, "", "01"),
    (COMPACT_STRING, None, "00"),
    (COMPACT_STRING, "abc", "04 616263"),
    (COMPACT_STRING, "x" * 127, "8001" + "78" * 127),
    (BYTES, b"", "00000000"),
    (BYTES, None, "ffffffff"),
    (BYTES, b"\0\xff", "00000002 00ff"),
    (COMPACT_BYTES, b"", "01"),
    (COMPACT_BYTES, None, "00"),
    (COMPACT_BYTES, b"\x80", "02 80"),
    (ARRAY, [], "00000000"),
    (ARRAY, None, "ffffffff"),
    (ARRAY, [1, -1], "00000002 0001 ffff"),
    (COMPACT_ARRAY, [], "01"),
    (COMPACT_ARRAY, None, "00"),
    (COMPACT_ARRAY, ["a", None], "03 000161 ffff"),
    (POINT, {"x": 1, "y": 2}, "0102"),
    (Nullable(POINT), {"x": 1, "y": 2}, "01 0102"),
    (Nullable(POINT), None, "ff"),
    (NullableTagged(POINT), {"x": 1, "y": 2}, "01 0102"),
    (NullableTagged(POINT), None, "00"),
    (FLEXIBLE, {"x": 1, "racks": [], "rack": "r"}, "01 00"),
    (FLEXIBLE, {"x": 1, "racks": [], "rack": None}, "01 01 0101 00"),
    (FLEXIBLE, {"x": 1, "racks": ["a"], "rack": ""}, "01 02 0004 02000161 0101 01"),
    (
        FLEXIBLE,
        {"x": 1, "racks": [], "rack": "s", "unknown_tags": {2: b"", 128: b"\1\2"}},
        "01 03 0102 0273 0200 800102 0102",
    ),
]


@pytest.mark.parametrize(("construct", "value", "data"), CASES)
def test_both_ways(construct: Construct, value: Any, data: str) -> None:
    encoded = bytes.fromhex(data)
    assert construct.build(value) == encoded
    parsed = construct.parse(encoded)
    assert parsed == value
    assert type(parsed) is (Container if isinstance(value, dict) else type(value))


@pytest.mark.parametrize(("construct", "value", "data"), CASES)
def test_following_bytes_are_not_consumed(construct: Construct, value: Any, data: str) -> None:
    stream = io.BytesIO(bytes.fromhex(data) + b"rest")
    construct.parse_stream(stream)
    assert stream.read() == b"rest"


@pytest.mark.parametrize(("construct", "value", "data"), CASES)
def test_truncated_values(construct: Construct, value: Any, data: str) -> None:
    encoded = bytes.fromhex(data)
    for end in {*range(min(len(encoded), 40)), len(encoded) - 1}:
        with pytest.raises(DecodeError) as raised:
            construct.parse(encoded[:end])
        assert 0 <= raised.value.position <= end


@pytest.mark.parametrize(("construct", "value", "data"), CASES)
def test_the_minimum_size_is_correct(construct: Construct, value: Any, data: str) -> None:
    """Counts are checked against it, so it must not exceed the size of a value."""
    assert 0 < construct.min_bytes <= len(bytes.fromhex(data))


@pytest.mark.parametrize(
    ("construct", "size"),
    [(int8, 1), (int16, 2), (int32, 4), (int64, 8), (float64, 8), (boolean, 1), (uuid16, 16)],
)
def test_sizes(construct: Construct, size: int) -> None:
    assert construct.sizeof() == size == construct.min_bytes


def test_a_varint_has_no_size() -> None:
    with pytest.raises(EncodeError, match="a varint has no fixed size"):
        unsigned_varint.sizeof()


def test_nan() -> None:
    data = bytes.fromhex("7ff8000000000000")
    assert math.isnan(float64.parse(data))
    assert float64.build(float64.parse(data)) == data


@pytest.mark.parametrize("data", ["8000", "8080808000", "ff8000"])
def test_padded_varints_are_decoded(data: str) -> None:
    """Kafka also accepts them; they are encoded in shortest form."""
    value = unsigned_varint.parse(bytes.fromhex(data))
    assert value in (0, 0x7F)
    assert len(unsigned_varint.build(value)) == 1


@given(st.integers(0, 2**32 - 1))
def test_every_varint(value: int) -> None:
    data = unsigned_varint.build(value)
    assert len(data) == max(1, -(-value.bit_length() // 7))
    assert unsigned_varint.parse(data) == value


# Construct, bytes, path, position, what.
HOSTILE: list[tuple[Construct, str, str, int, str]] = [
    (int8, "", "", 0, "1 bytes expected, 0 left"),
    (int64, "000000", "", 0, "8 bytes expected, 3 left"),
    (uuid16, "00" * 15, "", 0, "16 bytes expected, 15 left"),
    (unsigned_varint, "", "", 0, "1 bytes expected, 0 left"),
    (unsigned_varint, "ffff", "", 2, "1 bytes expected, 0 left"),
    (unsigned_varint, "ffffffffff00", "", 0, "varint does not end within 32 bits"),
    (unsigned_varint, "ffffffff10", "", 0, "varint does not end within 32 bits"),
    (STRING, "fffe", "", 0, "length -2 is negative"),
    (STRING, "8000", "", 0, "length -32768 is negative"),
    (STRING, "0003 6162", "", 0, "length 3 but 2 bytes are left in the message"),
    (COMPACT_STRING, "ffffffff0f", "", 0, "length 4294967294 but 0 bytes are left in the message"),
    (BYTES, "7fffffff 00", "", 0, "length 2147483647 but 1 bytes are left in the message"),
    (BYTES, "fffffffe", "", 0, "length -2 is negative"),
    (ARRAY, "7fffffff 0000", "", 0, "count 2147483647 but 2 bytes are left in the message"),
    (ARRAY, "00000002 000100", "", 0, "count 2 but 3 bytes are left in the message"),
    (ARRAY, "80000000", "", 0, "length -2147483648 is negative"),
    (COMPACT_ARRAY, "ffffffff0f", "", 0, "count 4294967294 but 0 bytes are left in the message"),
    (COMPACT_ARRAY, "03 000161 000261", "[1]", 4, "length 2 but 1 bytes are left in the message"),
    (POINT, "01", "y", 1, "1 bytes expected, 0 left"),
    (Nullable(POINT), "0101", "y", 2, "1 bytes expected, 0 left"),
    (
        CountedArray(int32, POINT),
        "00000001 01",
        "",
        0,
        "count 1 but 1 bytes are left in the message",
    ),
    (FLEXIBLE, "01", "", 1, "1 bytes expected, 0 left"),
    (FLEXIBLE, "01 02 0000 00", "", 1, "2 tagged fields but 3 bytes are left"),
    (FLEXIBLE, "01 02 0500 0500", "", 4, "tag 5 occurs twice"),
    (FLEXIBLE, "01 01 0503 0000", "", 2, "tag 5 has size 3 but 2 bytes are left"),
    (FLEXIBLE, "01 01 0102 0361", "rack", 4, "length 2 but 1 bytes are left in the message"),
    (FLEXIBLE, "01 01 0101 0261", "rack", 5, "tagged field ends at byte 6, its size says 5"),
    (FLEXIBLE, "01 01 0103 026161", "rack", 6, "tagged field ends at byte 6, its size says 7"),
    (FLEXIBLE, "01 01 0005 0300016100", "racks[1]", 8, "2 bytes expected, 1 left"),
]


@pytest.mark.parametrize(("construct", "data", "path", "position", "what"), HOSTILE)
def test_hostile(construct: Construct, data: str, path: str, position: int, what: str) -> None:
    with pytest.raises(DecodeError) as raised:
        construct.parse(bytes.fromhex(data))
    error = raised.value
    assert (error.path, error.position, error.what) == (path, position, what)


@pytest.mark.parametrize("data", ["02 0102", "00 0102", "7f 0102"])
def test_any_positive_null_mark_means_a_present_struct(data: str) -> None:
    assert Nullable(POINT).parse(bytes.fromhex(data)) == {"x": 1, "y": 2}


@pytest.mark.parametrize("data", ["80", "fe", "ff"])
def test_any_negative_null_mark_means_null(data: str) -> None:
    assert Nullable(POINT).parse(bytes.fromhex(data)) is None


def test_positions_are_relative_to_the_stream() -> None:
    stream = io.BytesIO(b"header" + bytes.fromhex("0003 6162"))
    stream.seek(6)
    with pytest.raises(DecodeError) as raised:
        STRING.parse_stream(stream)
    assert raised.value.position == 6
    stream.seek(8)
    assert wire.bytes_left(stream) == 2


# Construct, value, the error's text.
UNWRITABLE: list[tuple[Construct, Any, str]] = [
    (int8, 128, "message: 128 is not a number of this size"),
    (int16, "1", "message: '1' is not a number of this size"),
    (int32, 2**31, "message: 2147483648 is not a number of this size"),
    (int64, None, "message: None is not a number of this size"),
    (uint16, -1, "message: -1 is not a number of this size"),
    (float64, "x", "message: 'x' is not a number of this size"),
    (float64, 10**400, f"message: {10**400} is not a number of this size"),
    (boolean, 256, "message: 256 is not a boolean"),
    (boolean, "yes", "message: 'yes' is not a boolean"),
    (boolean, None, "message: None is not a boolean"),
    (uuid16, "abc", "message: 'abc' is not a uuid"),
    (uuid16, None, "message: None is not a uuid"),
    (unsigned_varint, -1, "message: -1 is not an unsigned varint"),
    (unsigned_varint, 2**32, "message: 4294967296 is not an unsigned varint"),
    (unsigned_varint, 1.0, "message: 1.0 is not an unsigned varint"),
    (STRING, b"abc", "message: b'abc' is not text"),
    (STRING, 5, "message: 5 is not text"),
    (STRING, "\ud800", r"message: '\ud800' can't be written as UTF-8"),
    (STRING, LONGEST + "d", "message: 32768 is not a number of this size"),
    (BYTES, "abc", "message: 'abc' is not bytes"),
    (ARRAY, "12", "message: '12' is not a list"),
    (ARRAY, b"12", "message: b'12' is not a list"),
    (ARRAY, {1: 2}, "message: {1: 2} is not a list"),
    (ARRAY, [1, 2, 70000], "[2]: 70000 is not a number of this size"),
    (POINT, {"y": 1}, "x: is missing"),
    (POINT, {"x": 1, "y": None}, "y: None is not a number of this size"),
    (POINT, [1, 2], "message: [1, 2] is not a mapping"),
    (Nullable(POINT), {"x": 1000}, "x: 1000 is not a number of this size"),
    (CountedArray(int32, POINT), [{"x": 1}, {}], "[1].x: is missing"),
    (FLEXIBLE, {"x": 1, "rack": 5}, "rack: 5 is not text"),
    (FLEXIBLE, {"x": 1, "racks": ["a", 5]}, "racks[1]: 5 is not text"),
]


@pytest.mark.parametrize(("construct", "value", "text"), UNWRITABLE)
def test_unwritable(construct: Construct, value: Any, text: str) -> None:
    with pytest.raises(EncodeError) as raised:
        construct.build(value)
    assert str(raised.value) == text


@pytest.mark.parametrize(
    ("construct", "value"),
    [
        (boolean, "1"),
        (boolean, b"1"),
        (FLEXIBLE, {"x": 1, "unknown_tags": {5: "text"}}),
        (FLEXIBLE, {"x": 1, "unknown_tags": {"5": b"", 6: b""}}),
        (FLEXIBLE, {"x": 1, "unknown_tags": None}),
    ],
)
def test_further_unwritable_values(construct: Construct, value: Any) -> None:
    try:
        data = construct.build(value)
    except EncodeError:
        return
    raise AssertionError(data)


def test_a_uuid_can_be_encoded_from_its_text() -> None:
    assert uuid16.build(str(ID)) == ID.bytes


def test_bytes_may_be_any_buffer() -> None:
    assert BYTES.build(bytearray(b"a")) == BYTES.build(memoryview(b"a")) == BYTES.build(b"a")


def test_missing_fields_have_defaults() -> None:
    assert POINT.build({"x": 1}) == bytes.fromhex("0107")
    assert FLEXIBLE.build({"x": 1}) == bytes.fromhex("0100")


def test_default_lists_are_independent() -> None:
    first, second = FLEXIBLE.parse(b"\1\0"), FLEXIBLE.parse(b"\1\0")
    first.racks.append("a")
    assert second.racks == FLEXIBLE.parse(b"\1\0").racks == []


@given(st.sampled_from([case[0] for case in CASES]), st.binary(max_size=40))
def test_any_bytes_give_a_value_or_an_error_with_a_position(
    construct: Construct, data: bytes
) -> None:
    failed = None
    try:
        value = construct.parse(data)
    except DecodeError as error:
        failed = error
    if failed:
        assert 0 <= failed.position <= len(data)
    else:
        decoded = construct.parse(construct.build(value))
        assert decoded == value or value != value  # not a number
