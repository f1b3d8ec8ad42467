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

_NOWHERE, _ON_TAPE, _ELSEWHERE = range(3)
"""Where the values of a field are: there are none; on the tape; only the codecs tell."""


@dataclass(slots=True)
class Answers:
    """
    What a test says of the values at a path.

    Attributes:
        passes: Of each row whether any value passes, as far as the tape tells.
        unknown: Of which rows it does not tell.
    """

    passes: Mask
    unknown: Mask


def any_value(
    table: Exchanges, side: Kind, path: tuple[str, ...], rows: Ints, test: Test
) -> Answers:
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
    out = Answers(np.zeros(len(rows), np.bool_), np.zeros(len(rows), np.bool_))
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
        where = _where(key, version, side, path)
        if where == _ELSEWHERE:
            out.unknown |= these
        elif where == _ON_TAPE:
            steps[these] = programs().start(key, version, side)
    asked = np.flatnonzero(steps >= 0)
    if not len(asked):
        return out
    places = programs().field_refs
    wanted = np.array([_is_at(each, side, path) for each in places], np.uint8)
    begin = start[asked]
    read = tape.read(
        table.data, table.carry_over, begin, begin + there[asked], steps[asked], programs(), wanted
    )
    hits = read.message[_passing(table, read, places, test)]
    out.passes[asked[hits]] = True
    unread = asked[read.state != tape.FITS]
    out.passes[unread] = False
    out.unknown[unread] = True
    return out


@per_schemas
def _where(key: int, version: int, side: Kind, path: tuple[str, ...]) -> int:
    """Return where the values at a path are in one version of a message."""
    found = api(key)
    schema = found.schema(side) if found else None
    if schema is None or schema.closest_version(version) is None:
        return _NOWHERE
    if version not in schema.versions:
        return _ELSEWHERE  # the codecs tell whether it fits the newest known one
    fields: Sequence[Field] = schema.fields
    for name in path:
        here = [each for each in fields if each.name == name and version in each.versions]
        if not here:
            return _NOWHERE
        (field,) = here
        if field.tag is not None:
            return _ELSEWHERE
        fields = field.fields
    return _ELSEWHERE if field.type == "struct" else _ON_TAPE


def _is_at(place: FieldRef | None, side: Kind, path: tuple[str, ...]) -> bool:
    if place is None or place.key < 0 or place.kind != side:
        return False
    return place.path.removesuffix(".[]") == ".".join(path)


def _passing(
    table: Exchanges, read: tape.Tape, places: list[FieldRef | None], test: Test
) -> NDArray[np.int64]:
    """Return the rows of a tape whose values pass."""
    out = np.zeros(len(read), np.bool_)
    for number in np.flatnonzero(np.bincount(read.field)).tolist():
        place = places[number]
        assert place is not None
        rows = np.flatnonzero(read.field == number)
        out[rows] = _answers(table, read, rows, _word(place), test)
    return np.flatnonzero(out)


def _word(place: FieldRef) -> str:
    word = place.declared.type
    return word.removeprefix("[]") if place.path.endswith(".[]") else word


def _answers(table: Exchanges, read: tape.Tape, rows: Ints, word: str, test: Test) -> Mask:
    """Return what a test says of rows of one type."""
    values = read.value[rows]
    if word in _CONTENTS:
        known: dict[bytes | None, bool] = {}
        convert = _CONTENTS[word]
        answers = []
        for start, length in zip(read.start[rows].tolist(), values.tolist(), strict=True):
            content = None if length < 0 else table.bytes_at(start, length)
            if content not in known:
                known[content] = test(None if content is None else convert(content))
            answers.append(known[content])
        return np.array(answers, np.bool_)
    places, distinct_values = distinct(values)
    return np.array([_tested(word, each, test) for each in distinct_values.tolist()])[places]


def _tested(word: str, value: int, test: Test) -> bool:
    """Return what a test says of a number, or of an array of that count."""
    if word.startswith("[]"):
        # Of plain values each has a row of its own; of structs the first stands for all.
        if value < 0:
            return test(None)
        return word == "[]struct" and value > 0 and test({})
    return test(BOOLEANS[value] if word == "bool" else value)


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogateescape")


def _float(content: bytes) -> float:
    return float(np.frombuffer(content, ">f8")[0])


_CONTENTS: dict[str, Callable[[bytes], Any]] = {
    "string": _text,
    "bytes": bytes,
    "records": bytes,
    "uuid": lambda content: UUID(bytes=content),
    "float64": _float,
}
