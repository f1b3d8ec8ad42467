from __future__ import annotations

from dissector.engine.parquet.thrift import Int, struct


def test_fields_of_each_type() -> None:
    # Source: doc/specs/thrift-compact-protocol.md: ids as differences, zigzag numbers.
    assert struct({}) == b"\x00"
    assert struct({1: True, 2: False, 4: None}) == b"\x11\x12\x00"
    assert struct({1: 150}) == b"\x15\xac\x02\x00"
    assert struct({2: -1, 3: Int(1, 64)}) == b"\x25\x01\x16\x02\x00"
    assert struct({1: Int(8, 8), 15: Int(-2, 16)}) == b"\x13\x08\xe4\x03\x00"
    assert struct({1: "ab", 2: b""}) == b"\x18\x02ab\x18\x00\x00"
    assert struct({3: {1: 1}}) == b"\x3c\x15\x02\x00\x00"


def test_lists_short_and_long() -> None:
    assert struct({1: [1, -1]}) == b"\x19\x25\x02\x01\x00"
    assert struct({1: [{1: 0}]}) == b"\x19\x1c\x15\x00\x00\x00"
    assert struct({1: ["x"] * 20}) == b"\x19\xf8\x14" + b"\x01x" * 20 + b"\x00"
