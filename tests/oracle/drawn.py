"""Bodies for the oracle: few, and the same in each run."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

from hypothesis import HealthCheck, Phase, given, settings

from dissector.protocol.schema import Field, Schema, split_tagged
from tests.message_strategies import values

COUNT = 3


def bodies(schema: Schema, version: int) -> list[dict[str, Any]]:
    """Make bodies of one version: full, empty, null, and drawn ones with valid UTF-8."""
    found = [
        full(schema, version),
        _bare(schema.fields, version, nulls=False),
        _bare(schema.fields, version, nulls=True),
    ]

    @settings(
        max_examples=COUNT,
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(values(schema, version).map(_readable))
    def collect(body: dict[str, Any]) -> None:
        found.append(body)

    collect()
    return found


def full(schema: Schema, version: int) -> dict[str, Any]:
    """Fill every field with a distinct value: not null, not empty, not the default."""
    return _full(schema.fields, version, itertools.count(1))


def _full(fields: tuple[Field, ...], version: int, numbers: Iterator[int]) -> dict[str, Any]:
    return {
        field.name: _filled(field, field.type, version, numbers)
        for field in itertools.chain(*split_tagged(fields, version))
    }


def _filled(field: Field, word: str, version: int, numbers: Iterator[int]) -> Any:
    if word.startswith("[]"):
        return [_filled(field, word[2:], version, numbers) for _ in range(2)]
    number = next(numbers)
    match word:
        case "struct":
            return _full(field.fields, version, numbers)
        case "bool":
            return field.default is not True
        case "string":
            return f"{field.name} {number}"
        case "bytes" | "records":
            return b"%d" % number
        case "uuid":
            return UUID(int=number)
        case "int8":
            return number % 100 + 2
        case "float64":
            return number + 0.5
    return number + 2


def _bare(fields: tuple[Field, ...], version: int, nulls: bool) -> dict[str, Any]:
    """Leave every field empty, or null if nullable."""
    return {
        field.name: None if nulls and version in field.null else _empty(field, version)
        for field in itertools.chain(*split_tagged(fields, version))
    }


def _empty(field: Field, version: int) -> Any:
    if field.type == "struct":
        return _bare(field.fields, version, nulls=False)
    if field.type == "records":
        return b""
    return replace(field, default=...).zero(version)


def _readable(value: Any) -> Any:
    """Replace texts with invalid UTF-8, which Kafka decodes with question marks."""
    match value:
        case str():
            return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        case list():
            return [_readable(item) for item in value]
        case dict():
            return {key: _readable(item) for key, item in value.items()}
    return value
