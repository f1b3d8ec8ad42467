"""
The values of a field of bodies, for many exchanges at once: off the tape where that tells them.

They are the values that stand in decoded bodies. Where the tape does not tell them (bytes that do
not fit, tagged fields, which have a value also where they are absent, structs), the exchange is to
be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from dissector.engine.facts.fact_kernel import VERSIONS
from dissector.engine.facts.fact_tables import distinct_kinds, message_kinds
from dissector.engine.tables.column_types import distinct
from dissector.engine.tables.exchange_table import NONE, Exchanges, Ints
from dissector.engine.tape import tape
from dissector.protocol.api import Kind
from dissector.protocol.apis import api
from dissector.protocol.compiled import BOOLEANS
from dissector.protocol.context import per_schemas
from dissector.protocol.headers import API_VERSIONS
from dissector.protocol.messages import UNSUPPORTED_VERSION
from dissector.protocol.program import FieldRef, programs
from dissector.protocol.schema import Field

Mask: TypeAlias = NDArray[np.bool_]
Test: TypeAlias = Callable[[object], bool]

_ABSENT, _ON_TAPE, _IN_CODECS = range(3)
"""Where the values of a field are: there are none; on the tape; only the codecs tell."""


@dataclass(slots=True)
class PredicateResult:
    """
    What a test says of the values at a path.

    Attributes:
        passes: Of each row whether any value passes, as far as the tape tells.
        unknown: Of which rows it does not tell.
    """

    passes: Mask
    unknown: Mask


def matches_any_value(
    table: Exchanges, side: Kind, path: tuple[str, ...], rows: Ints, test: Test
) -> PredicateResult:
    """
    Ask a test about the values at a path of bodies.

    Args:
        table: The exchanges.
        side: Whose bodies.
        path: The names that lead to the field.
        rows: The exchanges that are looked at.
        test: Tells of a value.
    """
    frames = table.request if side == "request" else table.response
    start, there = frames.start[rows], frames.captured_bytes[rows]
    whole = (start != NONE) & (there == frames.size[rows]) & ~table.token[rows]
    out = PredicateResult(np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.bool_))
    if side == "response":
        # Where a version of ApiVersions is refused, the answer is v0 or something else.
        told = whole & (table.api_key[rows] == API_VERSIONS) & (there >= 6)
        told[told] = table.int16_at(start[told] + 4) == UNSUPPORTED_VERSION
        out.unknown |= told
    kinds = np.where(whole & ~out.unknown, message_kinds(table)[rows], -1)
    out.unknown |= whole & (kinds < 0)
    steps = np.full(len(rows), -1, np.int64)
    for kind in distinct_kinds(kinds):
        key, version = divmod(kind, VERSIONS)
        these = kinds == kind
        where = _value_source(key, version, side, path)
        if where == _IN_CODECS:
            out.unknown |= these
        elif where == _ON_TAPE:
            steps[these] = programs().start(key, version, side)
    asked = np.flatnonzero(steps >= 0)
    if not len(asked):
        return out
    places = programs().field_refs
    wanted = np.array([_is_field_at(each, side, path) for each in places], np.uint8)
    begin = start[asked]
    read = tape.read(
        table.data, table.carry_over, begin, begin + there[asked], steps[asked], programs(), wanted
    )
    hits = read.message[_passing_rows(table, read, places, test)]
    out.passes[asked[hits]] = True
    unread = asked[read.state != tape.FITS]
    out.passes[unread] = False
    out.unknown[unread] = True
    return out


@per_schemas
def _value_source(key: int, version: int, side: Kind, path: tuple[str, ...]) -> int:
    """Return where the values at a path are in one version of a message."""
    found = api(key)
    schema = found.schema(side) if found else None
    if schema is None or schema.closest_version(version) is None:
        return _ABSENT
    if version not in schema.versions:
        return _IN_CODECS  # the codecs tell whether it fits the newest known one
    fields: Sequence[Field] = schema.fields
    for name in path:
        here = [each for each in fields if each.name == name and version in each.versions]
        if not here:
            return _ABSENT
        (field,) = here
        if field.tag is not None:
            return _IN_CODECS
        fields = field.fields
    return _IN_CODECS if field.type == "struct" else _ON_TAPE


def _is_field_at(ref: FieldRef | None, side: Kind, path: tuple[str, ...]) -> bool:
    if ref is None or ref.key < 0 or ref.kind != side:
        return False
    return ref.path.removesuffix(".[]") == ".".join(path)


def _passing_rows(
    table: Exchanges, read: tape.Tape, field_refs: list[FieldRef | None], test: Test
) -> NDArray[np.int64]:
    """Return the rows of a tape whose values pass."""
    out = np.zeros(len(read), np.bool_)
    for number in np.flatnonzero(np.bincount(read.field)).tolist():
        place = field_refs[number]
        assert place is not None
        rows = np.flatnonzero(read.field == number)
        out[rows] = _test_rows(table, read, rows, _type_name(place), test)
    return np.flatnonzero(out)


def _type_name(ref: FieldRef) -> str:
    word = ref.declared.type
    return word.removeprefix("[]") if ref.path.endswith(".[]") else word


def _test_rows(table: Exchanges, read: tape.Tape, rows: Ints, type_name: str, test: Test) -> Mask:
    """Return what a test says of rows of one type."""
    values = read.value[rows]
    if type_name in _DECODERS:
        known: dict[bytes | None, bool] = {}
        convert = _DECODERS[type_name]
        answers = []
        for start, length in zip(read.start[rows].tolist(), values.tolist(), strict=True):
            content = None if length < 0 else table.bytes_at(start, length)
            if content not in known:
                known[content] = test(None if content is None else convert(content))
            answers.append(known[content])
        return np.array(answers, np.bool_)
    places, distinct_values = distinct(values)
    return np.array([_test_number(type_name, each, test) for each in distinct_values.tolist()])[
        places
    ]


def _test_number(type_name: str, value: int, test: Test) -> bool:
    """Return what a test says of a number, or of an array of that count."""
    if type_name.startswith("[]"):
        # Of plain values each has a row of its own; of structs the first stands for all.
        if value < 0:
            return test(None)
        return type_name == "[]struct" and value > 0 and test({})
    return test(BOOLEANS[value] if type_name == "bool" else value)


def _decode_text(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


def _decode_float(content: bytes) -> float:
    return float(np.frombuffer(content, ">f8")[0])


_DECODERS: dict[str, Callable[[bytes], Any]] = {
    "string": _decode_text,
    "bytes": bytes,
    "records": bytes,
    "uuid": lambda content: UUID(bytes=content),
    "float64": _decode_float,
}
