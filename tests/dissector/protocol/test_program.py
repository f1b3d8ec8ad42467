"""Programs: one for each message and version, cached, with numbers for fields."""

from __future__ import annotations

import numpy as np
import pytest

from dissector.protocol.api import Kind
from dissector.protocol.apis import all_apis
from dissector.protocol.program import (
    UNKNOWN_TAG,
    Op,
    ProgramTable,
    ProgramWriter,
)
from dissector.protocol.schema import construct_of


def test_a_program() -> None:
    table = ProgramTable()
    start = table.start(12, 0, "request")
    ops = [each.op for each in table.code[start:]]
    # Header: key, version, correlation id, client id. Body: group, generation, member.
    assert ops == [*[Op.NUMBER] * 3, Op.BYTES16, Op.BYTES16, Op.NUMBER, Op.BYTES16, Op.END]


def test_minimum_sizes_of_items_equal_those_of_the_constructs() -> None:
    writers = 0
    for each in all_apis():
        for schema in (each.request, each.response):
            for version in schema.versions:
                flexible = version in schema.flexible
                writer = ProgramWriter(ProgramTable(), each.key, "request", version, flexible)
                for _, field in schema.iter_fields(version):
                    if field.type.startswith("[]"):
                        item = field.fields if field.type == "[]struct" else field.type[2:]
                        least = construct_of(field, version, flexible).item.min_bytes
                        assert writer.min_bytes(item) == least, (each.name, version, field.name)
                        writers += 1
    assert writers > 1000


def test_arrays_jump_behind_their_items() -> None:
    table = ProgramTable()
    start = table.start(13, 4, "request")
    at, array = next(
        (i, c) for i, c in enumerate(table.code) if c.op == Op.ARRAY_COMPACT and i > start
    )
    assert table.code[array.behind - 1].op == Op.NEXT
    assert array.behind > at


def test_known_tags_jump_to_their_fields() -> None:
    table = ProgramTable()
    start = table.start(0, 10, "response")
    sections = [each for each in table.code[start:] if each.op == Op.TAGS and each.tag_count]
    assert [table.tags[each.first_tag].tag for each in sections] == [0, 0]
    for each in sections:
        assert table.code[each.behind - 1].op == Op.TAG_END


def test_tables_grow_with_the_programs() -> None:
    table = ProgramTable()
    assert [len(each) for each in table.tables()] == [0, 0]
    table.start(0, 10, "response")
    code, tags = table.tables()
    assert code["op"].tolist() == [each.op for each in table.code]
    assert tags["step"].tolist() == [each.step for each in table.tags]
    assert table.tables()[0] is code
    table.start(0, 11, "response")
    assert len(table.tables()[0]) == len(table.code) > len(code)


@pytest.mark.parametrize("kind", ["request", "response"])
def test_every_version_has_one_cached_program(kind: str) -> None:
    table = ProgramTable()
    starts = {}
    for found in all_apis():
        for version in found.schema(kind).versions:
            starts[found.key, version] = table.start(found.key, version, kind)
    size = len(table.code)
    assert all(table.start(key, version, kind) == at for (key, version), at in starts.items())
    assert len(table.code) == size
    assert len(set(starts.values())) == len(starts)


def test_a_field_has_the_same_number_in_all_versions() -> None:
    table = ProgramTable()
    table.start(0, 3, "request")
    before = table.field_numbers(0, "request")
    table.start(0, 13, "request")
    after = table.field_numbers(0, "request")
    assert after["acks"] == before["acks"]
    assert "topic_data.topic_id" in after
    assert "topic_data.topic_id" not in before
    place = table.field_refs[after["topic_data.name"]]
    assert place is not None
    assert (place.key, place.kind, place.path) == (0, "request", "topic_data.name")
    assert table.field_refs[UNKNOWN_TAG] is None


def test_unknown_apis_and_versions() -> None:
    table = ProgramTable()
    assert table.start(999, 0, "request") == table.start(0, 14, "request") == -1
    assert table.code == []


def test_tables_that_grow_equal_those_made_at_once() -> None:
    growing, whole = ProgramTable(), ProgramTable()
    kinds: tuple[Kind, ...] = ("request", "response")
    for key, version in ((3, 12), (0, 9), (1, 13), (3, 12), (18, 4), (0, 3)):
        for kind in kinds:
            growing.start(key, version, kind)
            whole.start(key, version, kind)
            growing.tables()
    assert [len(each) for each in growing.tables()] == [len(whole.code), len(whole.tags)]
    for one, other in zip(growing.tables(), whole.tables(), strict=True):
        np.testing.assert_array_equal(one, other)
