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
from dissector.values.steps import program_kernel
from dissector.values.steps.avro_programs import avro_text_program
from dissector.values.steps.field_arrays import Form
from tests.corpus import fast_and_long
from tests.kernel_modes import both

mode = both(program_kernel)

PREFIX = b"\x00\x00\x00\x00\x07"

SEEDS = fast_and_long([range(3_000)], [range(first, first + 100_000) for first in range(1, 6)])
"""Of doubles: the first is the seed, and there are as many numbers of each kind."""


def texts_of(schema: Any, values: Sequence[bytes]) -> list[str | int]:
    """Return the texts of values without their prefix; the form of those that have none."""
    program = avro_text_program(AvroSchema(json.dumps(schema)))
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
