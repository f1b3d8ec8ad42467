"""Differences between two declarations of one message, field by field and version by version."""

from __future__ import annotations

import json
from collections.abc import Iterator

from dissector.protocol.schema import Field, Schema, Versions
from tools.record.coverage import spans
from tools.release.declaration_merge import Fields, Pair, clip, default_of, pairs

OURS, THEIRS = "declared here", "in the release"


def differences(name: str, ours: Schema, theirs: Schema) -> Iterator[str]:
    """
    Yield the differences of a release from our declaration, one per line.

    Versions missing in the release are not compared, because ours include removed ones.
    """
    scope = set(theirs.versions)
    if new := scope - set(ours.versions):
        yield f"{name}: new versions {spans(new)} (declared: {ours.versions_text})"
    if clip(ours.flexible, scope) != clip(theirs.flexible, scope):
        yield f"{name}: flexible {_two(ours.flexible, theirs.flexible, scope)}"
    if theirs.key is not None and ours.key is not None and theirs.key != ours.key:
        yield f"{name}: key {ours.key} {OURS}, {theirs.key} {THEIRS}"
    yield from _fields(name, ours.fields, theirs.fields, scope)


def _fields(place: str, ours: Fields, theirs: Fields, scope: set[int]) -> Iterator[str]:
    found = pairs(ours, theirs, scope)
    for mine, yours in found:
        if yours is not None:
            yield from _field(f"{place}.{yours.kafka_name}", mine, yours, scope)
        elif mine is not None and (gone := clip(mine.versions, scope)):
            yield f"{place}.{mine.kafka_name}: removed in versions {spans(gone)}"
    wrong = [version for version in scope if _is_moved(found, ours, version)]
    if wrong:
        yield f"{place}: another order of fields in versions {spans(wrong)}"


def _field(place: str, mine: Field | None, yours: Field, scope: set[int]) -> Iterator[str]:
    here = clip(yours.versions, scope)
    if mine is None:
        if not here:
            return
        yield f"{place}: new field, {described(yours)}, in versions {spans(here)}"
        return
    if clip(mine.versions, scope) != here:
        yield f"{place}: versions {_two(mine.versions, yours.versions, scope)}"
    if clip(mine.null, here) != clip(yours.null, here):
        yield f"{place}: nullable {_two(mine.null, yours.null, here)}"
    for what, one, other in (
        ("type", mine.type, yours.type),
        ("tag", mine.tag, yours.tag),
        ("default", _text(default_of(mine)), _text(default_of(yours))),
        ("ignorable", mine.ignorable, yours.ignorable),
        ("map key", mine.key, yours.key),
        ("entity", mine.entity if yours.entity else "", yours.entity),
        ("int16 length in flexible versions", mine.classic, yours.classic),
    ):
        if one != other:
            yield f"{place}: {what} {one} {OURS}, {other} {THEIRS}"
    yield from _fields(place, mine.fields, yours.fields, here)


def _is_moved(found: list[Pair], ours: Fields, version: int) -> bool:
    """Return whether the untagged fields of both declarations differ in order."""
    both = [
        mine
        for mine, yours in found
        if mine and yours and mine.tag is None and yours.tag is None
        if version in mine.versions and version in yours.versions
    ]
    places = [next(at for at, each in enumerate(ours) if each is mine) for mine in both]
    return places != sorted(places)


def described(field: Field) -> str:
    """Describe the attributes of a field."""
    marks = [field.type]
    if field.null.low <= field.null.high:
        marks.append("nullable")
    if field.tag is not None:
        marks.append(f"tag {field.tag}")
    if field.default is not ...:
        marks.append(f"default {_text(field.default)}")
    return ", ".join(marks)


def _text(default: object) -> str:
    if default is ...:
        return "none"
    return json.dumps(default, default=str)


def _two(mine: Versions, yours: Versions, scope: set[int]) -> str:
    one, other = (spans(clip(each, scope)) or "none" for each in (mine, yours))
    return f"{one} {OURS}, {other} {THEIRS}"
