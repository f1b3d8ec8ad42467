"""Helpers of compiled functions, in cases rare in whole messages."""

from __future__ import annotations

import io
from typing import Any
from uuid import UUID

import pytest
from construct import Container

from dissector.protocol.codecs import compiled, wire
from dissector.protocol.codecs.compiled import FALLBACK_ERRORS, CodecFallback, read_tags


@pytest.mark.parametrize("value", [0x80, 0x3FFF, 0x4000, 2**21, 2**28, 2**32 - 1])
def test_varints(value: int) -> None:
    data = wire.unsigned_varint.build(value)
    assert compiled.varint_bytes(value) == data
    assert compiled.read_varint(b"_" + data, 1) == (value, 1 + len(data))


@pytest.mark.parametrize("data", ["ffffffffff", "ffffffff10", "ffff"])
def test_invalid_varints(data: str) -> None:
    with pytest.raises(FALLBACK_ERRORS):
        compiled.read_varint(bytes.fromhex(data), 0)


@pytest.mark.parametrize("value", [-1, 2**32, None, "1"])
def test_unencodable_varints(value: Any) -> None:
    with pytest.raises(FALLBACK_ERRORS):
        compiled.varint_bytes(value)


@pytest.mark.parametrize(
    "count", [0, 1, compiled.MAX_CACHED_COUNT - 1, compiled.MAX_CACHED_COUNT, 100]
)
def test_arrays_of_numbers_of_any_length(count: int) -> None:
    array = wire.CountedArray(wire.int32, wire.int16)
    numbers = list(range(-count, count, 2))
    data = array.build(numbers)
    both = array.compile()
    assert both.parse(data) == numbers
    assert both.build(numbers) == data


def test_a_tag_section() -> None:
    out = Container(rack="r")
    # 129 fields: one known, 128 unknown of no bytes, one of them with a tag of two bytes.
    tags = [1, *range(3, 130), 300]
    entries = b"".join(wire.unsigned_varint.build(tag) + b"\0" for tag in tags[1:])
    data = b"\x81\1" + b"\1\1x" + entries
    known = {1: ("rack", lambda data, at: (data[at : at + 1].decode(), at + 1))}
    assert read_tags(data, 1, data[0], out, known) == len(data)
    assert out == {"rack": "x", "unknown_tags": dict.fromkeys(tags[1:], b"")}
    assert compiled.tags_bytes({1: b"x"}, out) == data


@pytest.mark.parametrize(
    "data", ["02 0500 0500", "01 0502 00", "01 0102 0000", "01 0100", "01", "02 0500"]
)
def test_invalid_tag_sections(data: str) -> None:
    encoded = bytes.fromhex(data)
    with pytest.raises(FALLBACK_ERRORS):
        read_tags(encoded, 1, encoded[0], Container(), {1: ("rack", lambda _, at: (0, at + 1))})


@pytest.mark.parametrize("unknown", [None, [], {"1": b""}, {1: "x"}, {-1: b""}, {2**32: b""}])
def test_unencodable_tag_sections(unknown: Any) -> None:
    with pytest.raises(CodecFallback):
        compiled.tags_bytes({}, {"unknown_tags": unknown})


def test_equal_uuids_are_created_once() -> None:
    first = compiled.uuid_of(bytes(range(16)))
    assert first == UUID(bytes=bytes(range(16)))
    assert compiled.uuid_of(bytes(range(16))) is first


def test_unusual_values() -> None:
    assert compiled.uuid_bytes(str(UUID(int=5))) == UUID(int=5).bytes
    assert compiled.plain_bytes(memoryview(b"a")) == b"a"
    assert compiled.plain_list((1,)) == (1,)
    assert compiled.text_bytes(type("T", (str,), {})("a")) == b"a"
    assert compiled.boolean(2) == 2
    for call in (compiled.plain_bytes, compiled.plain_list, compiled.text_bytes):
        assert call(None) is None
        with pytest.raises(CodecFallback):
            call(1.5)
    with pytest.raises(CodecFallback):
        compiled.boolean(1.0)


def test_streams() -> None:
    """The other form starts at the same stream position."""
    stream = io.BytesIO(b"abc")
    stream.seek(1)
    assert compiled.parse_by(lambda data, at: (data[at], at + 1), stream, pytest.fail) == ord("b")
    assert stream.tell() == 2

    def misfit(*_: Any) -> Any:
        raise CodecFallback

    assert compiled.parse_by(misfit, stream, lambda again, *_: again.read()) == b"c"
    out = io.BytesIO()
    assert compiled.build_by(lambda obj: obj * 2, b"a", out, pytest.fail) == b"a"
    assert compiled.build_by(misfit, b"b", out, lambda obj, again, *_: again.write(obj)) == 1
    assert out.getvalue() == b"aab"
