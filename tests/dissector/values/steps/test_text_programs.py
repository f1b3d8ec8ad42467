"""Programs that write texts: numbers of all sizes, and what they leave to decoders."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Sequence
from itertools import chain
from random import Random
from typing import Any

import numpy as np
import pytest

from dissector.kernel.arrays import Buffers
from dissector.values.avro.avro_schema import AvroSchema
from dissector.values.carriers.carried_schema import MessagePlace
from dissector.values.json_values import compact_json
from dissector.values.schemas.known_schema import KnownSchema
from dissector.values.steps import program_kernel
from dissector.values.steps.avro_programs import avro_text_program
from dissector.values.steps.field_arrays import Form
from dissector.values.steps.step_programs import TextProgram
from tests.corpus import fast_and_long
from tests.kernel_modes import both

mode = both(program_kernel)

PREFIX = b"\x00\x00\x00\x00\x07"

SEEDS = fast_and_long([range(3_000)], [range(first, first + 100_000) for first in range(1, 6)])
"""Of doubles: the first is the seed, and there are as many numbers of each kind."""


def texts_of(schema: Any, values: Sequence[bytes]) -> list[str | int]:
    """Return the texts of values without their prefix; the form of those that have none."""
    return texts_by(avro_text_program(AvroSchema(json.dumps(schema))), values)


def texts_by(program: TextProgram | None, values: Sequence[bytes]) -> list[str | int]:
    assert program is not None
    whole = b"".join(PREFIX + each for each in values)
    length = np.array([len(PREFIX + each) for each in values], np.int64)
    nothing = np.zeros(0, np.uint8)
    buffers = Buffers._make((np.frombuffer(whole, np.uint8), nothing, nothing))
    columns = program.write(PREFIX, np.cumsum(length) - length, length, buffers)
    texts = np.concatenate(columns.texts).tobytes()
    return [
        texts[at : at + size].decode() if form == Form.WRITTEN else int(form)
        for form, at, size in zip(columns.form, columns.start, columns.size, strict=True)
    ]


def check_doubles(numbers: Sequence[float]) -> None:
    texts = texts_of("double", [struct.pack("<d", each) for each in numbers])
    assert texts == [repr(each) for each in numbers]


def random_doubles(random: Random, count: int) -> Iterator[float]:
    """Yield numbers of random bits, with few digits, and in the range of 17 digits."""
    for _ in range(count):
        number = struct.unpack("<d", random.randbytes(8))[0]
        if math.isfinite(number):
            yield number
        yield random.randrange(-(10**9), 10**9) / 10 ** random.randrange(12)
        yield random.uniform(-1, 1) * 10.0 ** random.randrange(-25, 25)
        yield random.getrandbits(63) * 2.0 ** random.randrange(-80, 20)


@pytest.mark.parametrize("seeds", SEEDS)
def test_doubles_are_those_of_python(seeds: range) -> None:
    check_doubles(list(random_doubles(Random(seeds.start), len(seeds))))


def test_doubles_beside_powers_of_two_and_ten() -> None:
    """Where the gaps between doubles change, and where an exponent begins to be written."""
    powers = chain(
        (2.0**exponent for exponent in range(-1074, 1024)),
        (float(f"1e{exponent}") for exponent in range(-323, 309)),
    )
    numbers = [
        near
        for each in powers
        for near in (each, math.nextafter(each, 0), math.nextafter(each, math.inf))
        if math.isfinite(near)
    ]
    check_doubles([*numbers, *(-each for each in numbers)])


def test_floats() -> None:
    random = Random(5)
    packed = [random.randbytes(4) for _ in range(3_000)]
    packed += [struct.pack("<I", bits) for bits in (0, 1 << 31, 1, 0x7FFFFF, 0x800000, 0x7F7FFFFF)]
    numbers = [struct.unpack("<f", each)[0] for each in packed]
    expected = [repr(each) if math.isfinite(each) else Form.REFUSED for each in numbers]
    assert texts_of("float", packed) == expected


@pytest.mark.parametrize(
    ("schema", "contents"),
    [
        ("null", {b"": "null", b"\x00": Form.REFUSED}),
        ("boolean", {b"\x01": "true", b"\x00": "false", b"\x02": Form.REFUSED}),
        ("long", {b"\xff" * 9 + b"\x01": str(-(2**63)), b"\x01": "-1", b"\x80": Form.REFUSED}),
        ("bytes", {b"\x04\x00\xff": '"00ff"', b"\x00": '""', b"\x02": Form.REFUSED}),
        (
            "string",
            {
                b'\x08"\\\n\x1f': r'"\"\\\n\u001f"',
                b"\x04\xc2\x85": r'"\u0085"',
                b"\x06\xe2\x80\xa8": r'"\u2028"',
                b"\x06\xed\xa0\x80": Form.REFUSED,
            },
        ),
        (
            {"type": "array", "items": "long"},
            {b"\x00": "[]", b"\x04\x02\x04\x02\x06\x00": "[1, 2, 3]"},
        ),
        (
            {"type": "map", "values": "null"},
            {
                b"\x00": "{}",
                b"\x04\x02a\x02b\x00": '{"a": null, "b": null}',
                b"\x04\x02a\x02a\x00": Form.REFUSED,
            },
        ),
        (
            {"type": "enum", "name": "E", "symbols": ["A", 'B"']},
            {b"\x00": '"A"', b"\x02": r'"B\""', b"\x04": Form.REFUSED},
        ),
        (
            {"type": "fixed", "name": "F", "size": 12, "logicalType": "duration"},
            {b"\x00" * 12: Form.REFUSED},
        ),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            {
                b"\x00": '"1970-01-01T00:00:00.000Z"',
                b"\xff" * 9 + b"\x01": Form.REFUSED,
            },
        ),
    ],
)
def test_texts_of_avro(schema: Any, contents: dict[bytes, str | int]) -> None:
    assert texts_of(schema, list(contents)) == list(contents.values())


def test_names_that_are_not_printed_as_they_are() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "a\u2028", "type": "long"}]}
    assert avro_text_program(AvroSchema(json.dumps(schema))) is None


def test_texts_that_outgrow_their_output() -> None:
    """Escapes take six times the bytes; the rest of the rows follows in more output."""
    text = b"\xa0\x8d\x06" + b"\x01" * 50_000
    expected = '"' + "\\u0001" * 50_000 + '"'
    assert texts_of("string", [text, b"\x02a", text]) == [expected, '"a"', expected]


PROTO = """
syntax = "proto3";
import "google/protobuf/timestamp.proto";
message Item {
  string text = 2;
  uint64 large = 1;
  optional sint32 small = 3;
  repeated int32 numbers = 4;
  map<string, Item> items = 5;
  map<int32, Kind> kinds = 6;
  oneof choice { bool flag = 7; Item inner = 8; }
  google.protobuf.Timestamp time = 9;
  google.protobuf.Duration span = 10;
  google.protobuf.StringValue word = 11;
  google.protobuf.Value any = 12;
  bytes content = 13;
  float share = 14;
  repeated Item list = 15;
  enum Kind { NONE = 0; SOME = 1; BELOW = -1; }
}
"""


def item(**changed: str) -> str:
    """Return the text of an item with other members."""
    members = {
        "text": '""',
        "large": "0",
        "small": "",
        "numbers": "[]",
        "items": "{}",
        "kinds": "{}",
        **dict.fromkeys(("flag", "inner", "time", "span", "word", "any"), ""),
        "content": '""',
        "share": "0.0",
        "list": "[]",
        **changed,
    }
    return "{" + ", ".join(f'"{name}": {each}' for name, each in members.items() if each) + "}"


PROTO_TEXTS: dict[bytes, str | int] = {
    b"": item(),
    b"\x08" + b"\xff" * 9 + b"\x01\x12\x01a": item(text='"a"', large=str(2**64 - 1)),
    b"\x18\x03\x20\x01\x22\x02\x02\x03": item(small="-2", numbers="[1, 2, 3]"),
    b"\x20\x01\x18\x03\x20\x01": Form.REFUSED,
    b"\x2a\x05\x0a\x01a\x12\x00\x2a\x00": item(items=f'{{"a": {item()}, "": {item()}}}'),
    b"\x2a\x00\x2a\x00": Form.REFUSED,
    b"\x32\x04\x08\x05\x10\x01\x32\x02\x10\x07": item(kinds='{"5": "SOME", "0": 7}'),
    b"\x32\x0b\x10" + b"\xff" * 9 + b"\x01": item(kinds='{"0": "BELOW"}'),
    b"\x38\x01\x42\x00": item(inner=item()),
    b"\x42\x00\x38\x01": item(flag="true"),
    b"\x42\x00\x42\x00": Form.REFUSED,
    b"\x4a\x00": item(time='"1970-01-01T00:00:00Z"'),
    b"\x4a\x06\x08\x01\x10\xc0\x84\x3d": item(time='"1970-01-01T00:00:01.001Z"'),
    b"\x4a\x03\x10\xff\x01": item(time='"1970-01-01T00:00:00.000000255Z"'),
    b"\x4a\x0b\x10" + b"\xff" * 9 + b"\x01": Form.REFUSED,
    b"\x52\x0b\x08" + b"\xff" * 9 + b"\x01": item(span='"-1s"'),
    b"\x52\x05\x10\x80\xe1\xeb\x17": item(span='"0.050s"'),
    b"\x5a\x00": item(word='""'),
    b"\x5a\x03\x0a\x01a": item(word='"a"'),
    b"\x62\x00": item(any="null"),
    b"\x62\x02\x08\x00": item(any="null"),
    b"\x62\x02\x20\x01": item(any="true"),
    b"\x62\x02\x2a\x00": item(any="{}"),
    b"\x62\x06\x32\x04\x0a\x02\x20\x00": item(any="[false]"),
    b"\x6a\x01\xff\x6a\x02\xff\x00": item(content='"/wA="'),
    b"\x6a\x00": item(),
    b"\x7a\x00\x7a\x02\x12\x00": item(list=f"[{item()}, {item()}]"),
    b"\xf8\x01\x05": Form.REFUSED,
    b"\x12\x01\xff": Form.REFUSED,
    b"\x12\x02a": Form.REFUSED,
    b"\x08": Form.REFUSED,
}


def test_texts_of_protobuf() -> None:
    decoder = KnownSchema("protobuf", PROTO).decoder
    like = PREFIX, len(PREFIX), MessagePlace.FIRST
    assert texts_by(decoder.text_program(like), list(PROTO_TEXTS)) == list(PROTO_TEXTS.values())
    for content, text in PROTO_TEXTS.items():
        if isinstance(text, str):
            assert compact_json(decoder.value(content, 0)) == text


def test_an_entry_of_a_map_as_a_value() -> None:
    entry = "message E { option map_entry = true; int32 key = 1; M value = 2; }"
    text = f'syntax = "proto3"; message M {{ map<int32, M> x = 1; }} {entry}'
    schema = KnownSchema("protobuf", text).decoder
    assert schema.text_program((PREFIX, len(PREFIX), "XEntry")) is None


def test_work_is_bounded_by_the_bytes() -> None:
    decoder = KnownSchema("protobuf", PROTO).decoder
    nested = b""
    for _ in range(60):
        nested = b"\x42" + bytes([len(nested)]) + nested if len(nested) < 128 else nested
    many = b"\x7a\x00" * 10_000
    keys = b"".join(b"\x2a\x04\x0a\x02" + bytes(divmod(at, 128)) for at in range(100))
    like = PREFIX, len(PREFIX), MessagePlace.FIRST
    found = texts_by(decoder.text_program(like), [nested, many, keys])
    assert found == [Form.REFUSED] * 3
