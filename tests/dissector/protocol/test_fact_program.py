"""Programs with roles of facts in their instructions."""

from __future__ import annotations

import pytest

from dissector.engine.facts.fact_kernel import KEYS, VERSIONS
from dissector.protocol.api import Kind
from dissector.protocol.apis import all_apis
from dissector.protocol.fact_program import (
    CLIENT_ID,
    RECORDS,
    RECORDS_CUT,
    ROLES,
    FactProgramTable,
)
from dissector.protocol.facts import ERROR, NO_FACT, PAIR_ID, PAIR_NAME, TOPIC, TOPIC_ID, fact_role
from dissector.protocol.program import Instruction, Op
from dissector.protocol.schema import Field, split_tagged

KINDS: tuple[Kind, ...] = ("request", "response")


def steps(key: int, version: int, kind: Kind) -> list[Instruction]:
    table = FactProgramTable()
    return table.code[table.start(key, version, kind) :]


def roles(key: int, version: int, kind: Kind) -> list[int]:
    found = [each.field for each in steps(key, version, kind) if each.op <= Op.BYTES_COMPACT]
    return [each for each in found if each != NO_FACT]


def number(size: int) -> Instruction:
    return Instruction(Op.NUMBER, size, is_signed=True, field=NO_FACT)


def content(op: int, role: int = NO_FACT) -> Instruction:
    return Instruction(op, field=role)


def array(least: int, behind: int) -> Instruction:
    return Instruction(Op.ARRAY32, least, behind=behind, field=NO_FACT)


def test_a_program() -> None:
    assert steps(0, 3, "request") == [
        *(number(2), number(2), number(4)),
        *(content(Op.BYTES16, CLIENT_ID), content(Op.BYTES16)),
        *(number(2), number(4)),
        array(6, 14),
        content(Op.BYTES16, TOPIC),
        array(8, 13),
        number(4),
        content(Op.BYTES32, RECORDS),
        *(Instruction(Op.NEXT), Instruction(Op.NEXT), Instruction(Op.END)),
    ]


def test_items_of_an_array_have_roles_instead_of_the_array() -> None:
    """Topics of Metadata requests before v4."""
    assert steps(3, 0, "request")[-4:] == [
        array(2, 7),
        content(Op.BYTES16, TOPIC),
        Instruction(Op.NEXT),
        Instruction(Op.END),
    ]


@pytest.mark.parametrize(
    ("key", "version", "kind", "expected"),
    [
        (1, 4, "response", [TOPIC, ERROR, RECORDS_CUT]),
        (1, 13, "response", [ERROR, TOPIC_ID, ERROR, RECORDS_CUT]),
        (3, 9, "response", [ERROR, TOPIC, ERROR]),
        (3, 12, "response", [ERROR, PAIR_NAME, PAIR_ID, ERROR]),
        (20, 3, "request", [CLIENT_ID, TOPIC]),
        (12, 4, "request", [CLIENT_ID]),
        (7, 0, "request", []),
    ],
)
def test_roles(key: int, version: int, kind: Kind, expected: list[int]) -> None:
    assert roles(key, version, kind) == expected


def test_only_fields_with_content_have_roles() -> None:
    table = FactProgramTable()
    for found in all_apis():
        for kind in KINDS:
            for version in found.schema(kind).versions:
                table.start(found.key, version, kind)
    code = table.code
    assert {each.field for each in code if each.op <= Op.BYTES_COMPACT} == set(range(ROLES))
    arrays_and_structs = [each for each in code if each.op in (Op.ARRAY32, Op.NULLABLE)]
    assert {each.field for each in arrays_and_structs} == {NO_FACT}
    errors = [each for each in code if each.op == Op.NUMBER and each.field == ERROR]
    assert {(each.size, each.is_signed) for each in errors} == {(2, True)}


def test_keys_and_versions_fit_the_table_of_programs() -> None:
    assert max(found.key for found in all_apis()) < KEYS
    assert max(s.versions.high for f in all_apis() for s in (f.request, f.response)) < VERSIONS


def test_id_and_name_of_a_topic_are_adjacent() -> None:
    """The loop relies on one id and one name, with no topics between them, in untagged fields."""
    for found in all_apis():
        for kind in KINDS:
            schema = found.schema(kind)
            for version in schema.versions:
                _check_pairs(schema.fields, version)


def _check_pairs(fields: tuple[Field, ...], version: int) -> None:
    plain, tagged = split_tagged(fields, version)
    here = plain + tagged
    halves = [(at, f) for at, f in enumerate(here) if fact_role(f, here) in (PAIR_NAME, PAIR_ID)]
    if halves:
        (first, one), (last, other) = halves
        assert {one.type, other.type} == {"string", "uuid"}
        assert one.tag is other.tag is None
        assert not any(between.fields for between in here[first:last])
    for each in here:
        _check_pairs(each.fields, version)
