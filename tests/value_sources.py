"""
Values for tests of every API and version: from a seeded generator, or from Hypothesis.

Hypothesis tests of each of 724 message versions would spend their time on strategies. So `make
test` runs one test per API, through all sides and versions with seeded values. A second test per
API, marked `long`, draws the version by Hypothesis; `make fuzz` runs it with fresh seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from dissector.protocol.api import Api, Kind
from dissector.protocol.apis import all_apis, api_name
from dissector.protocol.codecs.compiled import UNKNOWN_TAGS
from dissector.protocol.schema import Field, Schema, split_tagged
from tests.message_strategies import values


class Version(NamedTuple):
    """One side of an API at one version."""

    key: int
    kind: Kind
    version: int
    schema: Schema

    def __str__(self) -> str:
        return f"{api_name(self.key)} {self.kind} v{self.version}"


@cache
def versions(api: Api) -> list[Version]:
    """List both sides of an API at each version."""
    sides: tuple[Kind, Kind] = ("request", "response")
    return [
        Version(api.key, kind, version, api.schema(kind))
        for kind in sides
        for version in api.schema(kind).versions
    ]


VERSIONS = [version for api in all_apis() for version in versions(api)]

every_api = pytest.mark.parametrize("found", all_apis(), ids=lambda found: found.name)

DRAWN = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
"""For the test of each API where Hypothesis draws the version."""


@dataclass
class Source:
    """Random numbers, and values for any declaration."""

    chance: Random
    value: Callable[..., dict[str, Any]]
    """Takes a schema, a version, and whether tagged fields that nobody declared may be drawn."""

    def damaged(self, frame: bytes, keep: int = 0) -> bytes:
        """
        Return bytes unchanged, truncated, changed, or extended.

        Args:
            frame: The bytes.
            keep: Number of first bytes never changed.
        """
        how = self.chance.choice(["whole", "cut", "changed", "more"])
        if how == "cut":
            return frame[: self.chance.randint(0, len(frame))]
        if how == "more":
            return frame + self.chance.randbytes(self.chance.randint(1, 4))
        if how == "changed" and len(frame) > keep:
            return self.changed(frame, self.chance.randint(1, 3), keep)
        return frame

    def changed(self, frame: bytes, count: int, keep: int = 0) -> bytes:
        """Return bytes with some changed, except the first `keep`."""
        out = bytearray(frame)
        for _ in range(count):
            out[self.chance.randint(keep, len(out) - 1)] = self.chance.randint(0, 255)
        return bytes(out)


def seeded(*seed: Any) -> Source:
    """Return a source with the same values in each run."""
    chance = Random(repr(seed))
    return Source(
        chance,
        lambda schema, version, unknown=True: _struct(
            schema.fields, version, version in schema.flexible and unknown, chance
        ),
    )


def sources() -> st.SearchStrategy[Source]:
    """
    Draw a source with values drawn by Hypothesis.

    Random numbers have a drawn seed only, as single draws take too much time.
    """
    return st.builds(
        lambda data, seed: Source(
            Random(seed),
            lambda schema, version, unknown=True: data.draw(_values(schema, version, unknown)),
        ),
        st.data(),
        st.integers(0, 2**32),
    )


@cache
def _values(schema: Schema, version: int, unknown: bool) -> st.SearchStrategy[dict[str, Any]]:
    return values(schema, version, unknown)


def go_through(found: Sequence[Any], check: Callable[[Any, Source], None], times: int = 1) -> None:
    """Check each version with its own seeded values; a failure has a note with the version."""
    for one in found:
        for number in range(times):
            try:
                check(one, seeded(str(one), number))
            except BaseException as error:
                error.add_note(f"{one}, seed {number}")
                raise


def _struct(
    fields: tuple[Field, ...], version: int, unknown: bool, chance: Random
) -> dict[str, Any]:
    plain, tagged = split_tagged(fields, version)
    body = {field.name: _field(field, version, unknown, chance) for field in plain + tagged}
    if unknown and chance.random() < 0.3:
        known = {field.tag for field in tagged}
        tags = {chance.randint(0, 90) for _ in range(chance.randint(1, 2))} - known
        if tags:
            body[UNKNOWN_TAGS] = {tag: _bytes(chance) for tag in tags}
    return body


def _field(field: Field, version: int, unknown: bool, chance: Random) -> Any:
    if field.tag is not None and chance.random() < 0.3:
        return field.zero(version)
    if version in field.null and chance.random() < 0.3:
        return None
    if field.type == "struct":
        return _struct(field.fields, version, unknown, chance)
    if field.type == "[]struct":
        count = chance.choice((0, 1, 1, 2))
        return [_struct(field.fields, version, unknown, chance) for _ in range(count)]
    if field.type.startswith("[]"):
        return [_plain(field.type[2:], chance) for _ in range(chance.randint(0, 3))]
    return _plain(field.type, chance)


_INTS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint16": -16, "uint32": -32}
"""Bits of each type, negative where it has no sign."""

_LETTERS = 'aZ09 _.-"\\\n\0\x1b\x7f\x9fé日\u2028\ufeff🦈'


def _plain(word: str, chance: Random) -> Any:
    match word:
        case "bool":
            return chance.random() < 0.5
        case "string":
            return _text(chance)
        case "bytes" | "records":
            return _bytes(chance)
        case "uuid":
            return UUID(bytes=chance.choice((bytes(16), chance.randbytes(16))))
        case "float64":
            return chance.choice((0.0, -0.0, 0.25, 1e308, float("-inf"), chance.uniform(-9, 9)))
    bits = _INTS[word]
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if bits > 0 else (0, (1 << -bits) - 1)
    return chance.choice((low, high, 0, 1, *(chance.randint(low, high) for _ in range(4))))


def _text(chance: Random) -> str:
    """Return a text, sometimes with invalid UTF-8 as surrogates."""
    if chance.random() < 0.3:
        return _bytes(chance).decode("utf-8", "surrogateescape")
    return "".join(chance.choices(_LETTERS, k=chance.randint(0, 8)))


def _bytes(chance: Random) -> bytes:
    return chance.randbytes(chance.randint(0, 12))
