from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from dissector.values.avro.avro_compatibility import reading_problem
from tests.dissector.values.avro.avro_samples import Samples


def record(*fields: Any, name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def field(name: str, kind: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


LIST = record(field("next", ["null", "R"]))


@pytest.mark.parametrize(
    ("reader", "writer", "problem"),
    [
        ("long", "int", ""),
        ("int", "long", "the value was long and is int"),
        ("string", "bytes", ""),
        (["null", "long"], "int", ""),
        ("int", ["null", "int"], "the value was null and is int"),
        (record(field("a", "int")), record(field("a", "int"), field("b", "int")), ""),
        (record(field("a", "int"), field("b", "int", default=1)), record(field("a", "int")), ""),
        (
            record(field("a", "int"), field("b", "int")),
            record(field("a", "int")),
            "b is new and has no default",
        ),
        (record(field("b", "int", aliases=["a"])), record(field("a", "int")), ""),
        (
            record(field("a", record(field("b", "int"), name="S"))),
            record(field("a", record(field("b", "string"), name="S"))),
            "a.b was string and is int",
        ),
        (
            {"type": "array", "items": "int"},
            {"type": "array", "items": "string"},
            "[] was string and is int",
        ),
        ({"type": "map", "values": "long"}, {"type": "map", "values": "int"}, ""),
        (
            {"type": "enum", "name": "E", "symbols": ["A"]},
            {"type": "enum", "name": "E", "symbols": ["A", "B"]},
            " lacks the symbol 'B'",
        ),
        (
            {"type": "enum", "name": "E", "symbols": ["A"], "default": "A"},
            {"type": "enum", "name": "E", "symbols": ["A", "B"]},
            "",
        ),
        (
            {"type": "fixed", "name": "F", "size": 4},
            {"type": "fixed", "name": "F", "size": 5},
            " was of 5 bytes",
        ),
        ({"type": "long", "logicalType": "timestamp-millis"}, "long", ""),
        (LIST, LIST, ""),
        (
            record(field("next", ["null", "R"]), field("n", "int")),
            LIST,
            "n is new and has no default",
        ),
        ("Elsewhere", "int", ""),
    ],
)
def test_what_can_be_read(reader: Any, writer: Any, problem: str) -> None:
    assert reading_problem(reader, writer) == problem


def test_each_schema_reads_itself() -> None:
    for seed in range(50):
        schema = Samples(Random(seed)).schema
        assert reading_problem(schema, json.loads(json.dumps(schema))) == ""
