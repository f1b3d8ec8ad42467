"""
Tests the values of a body field in many exchanges at once, read from the tape.

The values equal those in decoded bodies. Where the tape lacks them (invalid bytes, tagged fields,
with a default if absent, structs), the result is unknown, and the exchange has to be decoded.
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
from dissector.protocol.codecs.compiled import BOOLEANS
from dissector.protocol.context import per_schemas
from dissector.protocol.headers import API_VERSIONS
from dissector.protocol.messages import UNSUPPORTED_VERSION
from dissector.protocol.program import FieldRef, programs
from dissector.protocol.schema import Field

Mask: TypeAlias = NDArray[np.bool_]
Test: TypeAlias = Callable[[object], bool]

_ABSENT, _ON_TAPE, _IN_CODECS = range(3)
"""Source of a field's values: none; the tape; only the codecs."""


@dataclass(slots=True)
class PredicateResult:
    """
    Result of a test on the values at a path.

    Attributes:
        passes: Rows with a passing value.
        unknown: Rows with values outside the tape.
    """

    passes: Mask
    unknown: Mask


def matches_any_value(
    table: Exchanges, side: Kind, path: tuple[str, ...], rows: Ints, test: Test
) -> PredicateResult:
    """
    Test the values at a path of bodies.

    Args:
        table: The exchanges.
        side: Request or response.
        path: Names of the structs and the field.
        rows: The exchanges to test.
        test: Predicate of a value.
    """
    frames = table.request if side == "request" else table.response
    start, captured = frames.start[rows], frames.captured_bytes[rows]
    is_whole = (start != NONE) & (captured == frames.size[rows]) & ~table.token[rows]
    result = PredicateResult(np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.bool_))
    if side == "response":
        # An ApiVersions response with UNSUPPORTED_VERSION has the layout of v0, or another one.
        is_refusal = is_whole & (table.api_key[rows] == API_VERSIONS) & (captured >= 6)
        is_refusal[is_refusal] = table.int16_at(start[is_refusal] + 4) == UNSUPPORTED_VERSION
        result.unknown |= is_refusal
    kinds = np.where(is_whole & ~result.unknown, message_kinds(table)[rows], -1)
    result.unknown |= is_whole & (kinds < 0)
    steps = np.full(len(rows), -1, np.int64)
    for kind in distinct_kinds(kinds):
        key, version = divmod(kind, VERSIONS)
        same_kind = kinds == kind
        source = _value_source(key, version, side, path)
        if source == _IN_CODECS:
            result.unknown |= same_kind
        elif source == _ON_TAPE:
            steps[same_kind] = programs().start(key, version, side)
    on_tape = np.flatnonzero(steps >= 0)
    if not len(on_tape):
        return result
    field_refs = programs().field_refs
    wanted = np.array([_is_field_at(each, side, path) for each in field_refs], np.uint8)
    begin = start[on_tape]
    fields = tape.read(
        table.data,
        table.carry_over,
        begin,
        begin + captured[on_tape],
        steps[on_tape],
        programs(),
        wanted,
    )
    hits = fields.message[_passing_rows(table, fields, field_refs, test)]
    result.passes[on_tape[hits]] = True
    unread = on_tape[fields.state != tape.FITS]
    result.passes[unread] = False
    result.unknown[unread] = True
    return result


@per_schemas
def _value_source(key: int, version: int, side: Kind, path: tuple[str, ...]) -> int:
    """Return the source of the values at a path, in one version of a message."""
    known_api = api(key)
    schema = known_api.schema(side) if known_api else None
    if schema is None or schema.closest_version(version) is None:
        return _ABSENT
    if version not in schema.versions:
        return _IN_CODECS  # the codecs try the newest known version
    fields: Sequence[Field] = schema.fields
    for name in path:
        declared = [each for each in fields if each.name == name and version in each.versions]
        if not declared:
            return _ABSENT
        (field,) = declared
        if field.tag is not None:
            return _IN_CODECS
        fields = field.fields
    return _IN_CODECS if field.type == "struct" else _ON_TAPE


def _is_field_at(ref: FieldRef | None, side: Kind, path: tuple[str, ...]) -> bool:
    if ref is None or ref.key < 0 or ref.kind != side:
        return False
    return ref.path.removesuffix(".[]") == ".".join(path)


def _passing_rows(
    table: Exchanges, fields: tape.Tape, field_refs: list[FieldRef | None], test: Test
) -> NDArray[np.int64]:
    """Return the rows of a tape with passing values."""
    out = np.zeros(len(fields), np.bool_)
    for number in np.flatnonzero(np.bincount(fields.field)).tolist():
        ref = field_refs[number]
        assert ref is not None
        rows = np.flatnonzero(fields.field == number)
        out[rows] = _test_rows(table, fields, rows, _type_name(ref), test)
    return np.flatnonzero(out)


def _type_name(ref: FieldRef) -> str:
    type_name = ref.declared.type
    return type_name.removeprefix("[]") if ref.path.endswith(".[]") else type_name


def _test_rows(table: Exchanges, fields: tape.Tape, rows: Ints, type_name: str, test: Test) -> Mask:
    """Test the values of tape rows of one type."""
    values = fields.value[rows]
    if type_name in _DECODERS:
        results: dict[bytes | None, bool] = {}
        convert = _DECODERS[type_name]
        passes = []
        for start, length in zip(fields.start[rows].tolist(), values.tolist(), strict=True):
            content = None if length < 0 else table.bytes_at(start, length)
            if content not in results:
                results[content] = test(None if content is None else convert(content))
            passes.append(results[content])
        return np.array(passes, np.bool_)
    codes, distinct_values = distinct(values)
    return np.array([_test_number(type_name, each, test) for each in distinct_values.tolist()])[
        codes
    ]


def _test_number(type_name: str, value: int, test: Test) -> bool:
    """Test a number, or an array by its count."""
    if type_name.startswith("[]"):
        # Scalar elements have separate rows; a struct represents all structs of its array.
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
