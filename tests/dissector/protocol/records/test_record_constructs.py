from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.errors import DecodeError, EncodeError
from dissector.protocol.records.layout import zigzag
from dissector.protocol.records.record_constructs import RECORD, varint, varlong


@pytest.mark.parametrize(
    ("number", "data"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (300, "d804"),
        ((1 << 31) - 1, "feffffff0f"),
        (-(1 << 31), "ffffffff0f"),
    ],
)
def test_varints(number: int, data: str) -> None:
    assert zigzag(number).hex() == data
    assert varint.build(number).hex() == data
    assert varint.parse(bytes.fromhex(data)) == number
    assert varlong.parse(bytes.fromhex(data)) == number


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_varlongs_round_trip(number: int) -> None:
    assert varlong.parse(varlong.build(number)) == number
    assert len(varlong.build(number)) <= 10


@pytest.mark.parametrize(
    ("codec", "data", "what"),
    [
        (varint, "ffffffffff01", "varint does not end within 32 bits"),
        (varint, "ffffffff1f", "varint does not end within 32 bits"),
        (varlong, "ffffffffffffffffff02", "varint does not end within 64 bits"),
        (varlong, "ff" * 10 + "01", "varint does not end within 64 bits"),
        (varint, "80", "1 bytes expected, 0 left"),
    ],
)
def test_bad_varints(codec: object, data: str, what: str) -> None:
    with pytest.raises(DecodeError) as error:
        codec.parse(bytes.fromhex(data))  # type: ignore[attr-defined]
    assert error.value.what == what


@pytest.mark.parametrize("number", [1 << 31, -(1 << 31) - 1, "1", None])
def test_values_beyond_a_varint_are_errors(number: object) -> None:
    with pytest.raises(EncodeError):
        varint.build(number)


def test_hand_encoded_record() -> None:
    data = bytes.fromhex("00 06 02 06 6b6579 01 02 04 6831 02 ff")
    record = RECORD.parse(data)
    assert record == {
        "attributes": 0,
        "timestamp_delta": 3,
        "offset_delta": 1,
        "key": b"key",
        "value": None,
        "headers": [{"key": "h1", "value": b"\xff"}],
    }
    assert RECORD.build(record) == data


def test_a_header_key_is_not_null() -> None:
    with pytest.raises(DecodeError, match=r"headers\[0\].key at byte 6: header key is null"):
        RECORD.parse(bytes.fromhex("00 00 00 01 01 02 01 01"))
    with pytest.raises(EncodeError, match="header key is null"):
        RECORD.build({"headers": [{"key": None, "value": b""}]})
