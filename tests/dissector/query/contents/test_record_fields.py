"""One field of values, as the whole values have it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

from dissector.filter.evaluate import values_at
from dissector.query.contents.record_fields import RecordFields
from dissector.values.steps import program_kernel
from dissector.values.value_reader import ValueReader
from tests.dissector.query.contents.value_cases import (
    CASES,
    HOSTILE_SEEDS,
    PREFIX,
    SEEDS,
    columns_of,
    damages,
    is_small,
    reader_of,
    spoiled,
)
from tests.kernel_modes import PYTHON, running


def paths(value: Any, around: Sequence[str] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the paths in a value, and some that it lacks."""
    if isinstance(value, list):
        for each in value[:2]:
            yield from paths(each, around)
    if isinstance(value, dict):
        yield (*around, "missing")
        for name, each in list(value.items())[:6]:
            yield (*around, name)
            yield from paths(each, (*around, name))


@pytest.mark.parametrize("case", ["avro", "proto"])
@pytest.mark.parametrize("seeds", SEEDS)
def test_fields_of_whole_and_of_damaged_values(case: str, seeds: range) -> None:
    for seed in seeds:
        random = Random(seed)
        check_fields(*CASES[case](random), random)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seeds", HOSTILE_SEEDS)
def test_hostile_values(case: str, seeds: range) -> None:
    """Values that were spoiled in many places, or are random, 1,000 for each schema."""
    for seed in seeds:
        random = Random(f"{case} {seed}")
        reader, written = CASES[case](random)
        found = sorted(set(paths(reader.read("t", written[0]).value)))
        small = [each for each in written if len(each) < 300]
        if not found or not small:
            continue
        path = random.choice(found)
        every = [*written, *(spoiled(random.choice(small), random) for _ in range(1_000))]
        check_values(reader, path, every)


@pytest.mark.parametrize("case", CASES)
def test_kernels_as_python(case: str) -> None:
    with running(PYTHON, program_kernel):
        for seed in range(4):
            random = Random(f"{case} {seed}")
            reader, written = CASES[case](random)
            check_fields(reader, [each for each in written if len(each) < 300], random)


ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {
            "name": "user",
            "type": [
                "null",
                {
                    "type": "record",
                    "name": "User",
                    "fields": [
                        {"name": "id", "type": "long"},
                        {"name": "chief", "type": ["null", "User"]},
                        {"name": "kind", "type": {"type": "enum", "name": "K", "symbols": ["A"]}},
                    ],
                },
            ],
        },
    ],
}
ORDER_PROTO = """
syntax = "proto3";
message Order {
  string id = 1; optional string note = 2; repeated string tags = 3; User user = 4;
  message User { int64 id = 1; User chief = 2; Kind kind = 3; }
  enum Kind { A = 0; }
}
"""
LOWEST = -(2**63)
ORDERS = {
    "avro": (
        b"\x02a\x00\x00\x00",
        b"\x02b\x02\x06\xe2\x80\xa2\x04\x02x\x02y\x00\x02" + b"\xff" * 9 + b"\x01\x00\x00",
        b"\x00\x02\x00\x02\x02z\x00\x02\x0e\x02\x12\x00\x00\x00",
    ),
    "proto": (
        b"\x00\x0a\x01a",
        b"\x00\x0a\x01b\x12\x03\xe2\x80\xa2\x1a\x01x\x1a\x01y\x22\x0b\x08" + b"\x80" * 9 + b"\x01",
        b"\x00\x12\x00\x1a\x01z\x22\x06\x08\x07\x12\x02\x08\x09",
    ),
}
"""Three orders: one with as little as can be, one with the lowest number, one of a user's chief."""


@pytest.mark.parametrize("case", CASES)
def test_fields_are_found_without_the_decoder(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = reader_of(ORDER) if case == "avro" else reader_of(ORDER_PROTO, "PROTOBUF")
    written = [PREFIX + each for each in ORDERS[case]]
    wanted: dict[tuple[str, ...], list[list[object]]] = {
        ("id",): [["a"], ["b"], [""]],
        ("note",): [[None], ["\u2022"], [""]],
        ("user", "id"): [[], [LOWEST], [7]],
        ("user", "kind"): [[], ["A"], ["A"]],
        ("user", "chief", "id"): [[], [], [9]],
        ("user", "missing"): [[], [], []],
    }
    if case == "proto":
        wanted["note",] = [[], ["\u2022"], [""]]
    for path, expected in wanted.items():
        fields = RecordFields(reader, path, is_key=False)
        values_of(fields, written)
        with monkeypatch.context() as patch:
            patch.setattr(reader, "read", None)
            assert values_of(fields, written) == expected, path


def check_fields(reader: ValueReader, written: Sequence[bytes], random: Random) -> None:
    every = [each for data in filter(is_small, written) for each in damages(data, random)]
    for path in set(paths(reader.read("t", written[0]).value)):
        check_values(reader, path, every)


def check_values(reader: ValueReader, path: Sequence[str], every: Sequence[bytes]) -> None:
    fields = RecordFields(reader, path, is_key=False)
    for data, found in zip(every, values_of(fields, every), strict=True):
        expected = reader.read("t", data, with_text=False).value
        assert in_any_order(found) == in_any_order(values_at(expected, path)), (path, data.hex())


def in_any_order(values: Iterable[object]) -> list[str]:
    return sorted(map(repr, values))


def values_of(fields: RecordFields, contents: Sequence[bytes]) -> list[list[object]]:
    """Return the values of each of some values of records, which lie in all three buffers."""
    found: list[list[object]] = [[] for _ in contents]
    every = np.arange(len(contents))
    for rows, index, values in fields.values(*columns_of(contents), every):
        each = values.tolist() if isinstance(values, np.ndarray) else values
        for row, number in zip(rows.tolist(), index.tolist(), strict=True):
            found[row].append(each[number])
    return found


def test_a_schema_that_grows_when_it_is_expanded() -> None:
    """Records inside records, each twice in the next: 2^40 fields, of which none is read twice."""
    kind: Any = {"type": "record", "name": "R0", "fields": [{"name": "n", "type": "long"}]}
    for level in range(1, 41):
        names = [{"name": "a", "type": kind}, {"name": "b", "type": f"R{level - 1}"}]
        kind = {"type": "record", "name": f"R{level}", "fields": names}
    schema = {
        "type": "record",
        "name": "Top",
        "fields": [{"name": "x", "type": "string"}, {"name": "deep", "type": ["null", kind]}],
    }
    reader = reader_of(schema)
    data = PREFIX + b"\x02a\x00"
    for path in (("x",), ("deep", "a", "b"), ("deep",)):
        fields = RecordFields(reader, path, is_key=False)
        found = values_of(fields, [data] * 3)
        assert found == [{"x": ["a"], "deep": [None]}.get(path[-1], [])] * 3
