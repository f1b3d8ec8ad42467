"""Programs that find a field: their forms, and what they leave to decoders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from dissector.kernel.arrays import NONE, Buffers
from dissector.values.schemas.known_schema import KnownSchema
from dissector.values.steps import program_kernel
from dissector.values.steps.field_arrays import Form
from tests.kernel_modes import both

mode = both(program_kernel)

PREFIX = b"\x00\x00\x00\x00\x07"

SCHEMA = {
    "type": "record",
    "name": "Item",
    "fields": [
        {"name": "at", "type": ["null", "boolean", "double", "long", "string", "Item"]},
        {"name": "blanks", "type": {"type": "array", "items": "null"}},
    ],
}
PROTO = """
syntax = "proto3";
message Item {
  oneof at { bool flag = 1; double share = 2; int64 number = 3; string text = 4; Item inner = 5; }
  repeated sint32 blanks = 6; uint64 large = 7; int32 small = 8;
}
"""


def find(kind: str, text: str, path: Sequence[str], values: Sequence[bytes | None]) -> list[Any]:
    """Return the forms of values; with the numbers of those that are numbers, or the bytes."""
    program = KnownSchema(kind, text).decoder.field_program(path, (PREFIX + b"\x00", 5, b"\x00"))
    assert program is not None
    contents = [each or b"" for each in values]
    whole = b"".join(contents)
    length = np.array([len(each) for each in contents], np.int64)
    start = np.cumsum(length) - length
    start[[each is None for each in values]] = NONE
    nothing = np.zeros(0, np.uint8)
    buffers = Buffers._make((np.frombuffer(whole, np.uint8), nothing, nothing))
    found = []
    for form, number, size, _ in zip(*program.find(PREFIX, start, length, buffers), strict=True):
        if form == Form.PLACED:
            found.append((form, whole[number : number + size]))
        else:
            found.append((form, number) if form > Form.NULL else form)
    return found


def test_forms_of_avro() -> None:
    contents = {
        b"\x00\x00": Form.NULL,
        b"\x02\x01\x00": (Form.BOOLEAN, 1),
        b"\x04" + b"\x00" * 6 + b"\xf0\x3f\x00": (Form.DOUBLE, 0x3FF << 52),
        b"\x04" + b"\x00" * 6 + b"\xf0\x7f\x00": (Form.PLACED, b"\x00" * 6 + b"\xf0\x7f"),
        b"\x06" + b"\xff" * 9 + b"\x01\x00": (Form.INTEGER, -(2**63)),
        b"\x06" + b"\xff" * 9 + b"\x02\x00": Form.REFUSED,
        b"\x08\x06\xe2\x80\xa2\x00": (Form.PLACED, b"\x06\xe2\x80\xa2"),
        b"\x08\x06\xed\xa0\x80\x00": Form.REFUSED,
        b"\x0a\x00\x00\x00": (Form.PLACED, b"\x00\x00"),
        b"\x0c\x00": Form.REFUSED,
        b"\x00": Form.REFUSED,
        b"\x00\x00\x00": Form.REFUSED,
    }
    values = [None, b"\x00\x00\x00\x00\x08", *(PREFIX + each for each in contents)]
    found = find("avro", json.dumps(SCHEMA), ("at",), values)
    assert found == [Form.ABSENT, Form.OTHER, *contents.values()]


def test_forms_of_protobuf() -> None:
    contents = {
        b"": Form.ABSENT,
        b"\x18\x05": (Form.INTEGER, 5),
        b"\x18\x05\x18\x07": (Form.INTEGER, 7),
        b"\x18\x05\x08\x01": Form.ABSENT,
        b"\x18" + b"\xff" * 9 + b"\x7f": (Form.INTEGER, -1),
        b"\x18" + b"\xff" * 10: Form.REFUSED,
        b"\x2a\x02\x18\x05": Form.ABSENT,
        b"\x2a\x03\x18\x05": Form.REFUSED,
        b"\x22\x01\xff": Form.REFUSED,
        b"\x32\x02\x80\x01": Form.ABSENT,
        b"\x32\x01\x80": Form.REFUSED,
        b"\xf8\x01\x05\x18\x09": (Form.INTEGER, 9),
        b"\x00\x05": Form.REFUSED,
        b"\xfb\x01\xfc\x01": Form.REFUSED,
    }
    values = [PREFIX + each for each in contents]
    assert find("protobuf", PROTO, ("number",), values) == [*contents.values()]


@pytest.mark.parametrize(
    ("path", "content", "form"),
    [
        (("small",), b"", (Form.INTEGER, 0)),
        (("small",), b"\x40\xff\xff\xff\xff\x1f", (Form.INTEGER, -1)),
        (("large",), b"\x38" + b"\xff" * 9 + b"\x01", Form.REFUSED),
        (("text",), b"\x22\x01a", (Form.PLACED, b"\x22\x01a")),
        (("inner",), b"\x2a\x00", (Form.PLACED, b"\x2a\x00")),
        (("inner",), b"\x2a\x00\x2a\x00", Form.REFUSED),
        (("inner", "small"), b"\x2a\x00", (Form.INTEGER, 0)),
        (("inner", "small"), b"\x2a\x02\x40\x05\x2a\x00", (Form.INTEGER, 5)),
        (("inner", "small"), b"\x2a\x02\x40\x05\x08\x00", Form.ABSENT),
        (("inner", "small", "none"), b"\x2a\x02\x40\x05", Form.ABSENT),
    ],
)
def test_fields_of_protobuf(path: Sequence[str], content: bytes, form: object) -> None:
    assert find("protobuf", PROTO, path, [PREFIX + content]) == [form]


def test_work_is_bounded_by_the_bytes() -> None:
    """Items of no bytes, and types inside themselves without an end, are left to the decoder."""
    hostile = [
        b"\x00" + b"\x80\x80\x80\x02\x00",
        b"\x00" + b"\xff" * 9 + b"\x01\x02\x00",
        b"\x0a" * 100 + b"\x00" * 101,
    ]
    values = [PREFIX + each for each in hostile]
    assert find("avro", json.dumps(SCHEMA), ("at",), values) == [Form.REFUSED] * 3
    nested = b""
    for _ in range(60):
        nested = b"\x2a" + bytes([len(nested)]) + nested
    assert find("protobuf", PROTO, ("number",), [PREFIX + nested]) == [Form.REFUSED]
    for path in (("at",), ("blanks",), ("missing",)):
        endless = {**SCHEMA, "fields": [*SCHEMA["fields"], {"name": "self", "type": "Item"}]}
        assert find("avro", json.dumps(endless), path, [PREFIX + b"\x00\x00"]) == [Form.REFUSED]
