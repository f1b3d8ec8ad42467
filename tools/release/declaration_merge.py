"""Merge of two declarations of a message: the release's, with our additions."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dissector.protocol.schema import Field, Schema, Versions

NONE = Versions(1, 0)
Fields = tuple[Field, ...]
Pair = tuple[Field | None, Field | None]
"""A field in our declaration, and in the release's."""


@dataclass(frozen=True)
class Merged:
    """
    A field of the merged declaration.

    Attributes:
        field: The attributes; child fields are in `children`.
        ours: The field in our declaration; None for a new one.
        children: Child fields of a struct or an array of structs.
    """

    field: Field
    ours: Field | None
    children: tuple[Merged, ...] = ()

    @property
    def keeps_marks(self) -> bool:
        """Return whether all attributes except the children are ours."""
        return self.ours is not None and self.field == replace(self.ours, fields=())

    @property
    def is_ours(self) -> bool:
        """Return whether nothing changes, including all children."""
        before = self.ours.fields if self.ours else ()
        same = len(before) == len(self.children) and all(
            each.ours is field for each, field in zip(self.children, before, strict=True)
        )
        return self.keeps_marks and same and all(each.is_ours for each in self.children)


def merged(ours: Schema, theirs: Schema) -> tuple[Schema, tuple[Merged, ...]]:
    """Return the merged message without its fields, and its fields."""
    scope = set(theirs.versions)
    low = min(ours.versions.low, theirs.versions.low)
    whole = Versions(low, max(ours.versions.high, theirs.versions.high))
    flexible = _range(ours.flexible, theirs.flexible, scope)
    key = ours.key if theirs.key is None else theirs.key
    return Schema(key, whole, flexible), _merged(ours.fields, theirs.fields, scope)


def _merged(ours: Fields, theirs: Fields, scope: set[int]) -> tuple[Merged, ...]:
    made = (_field(mine, yours, scope) for mine, yours in pairs(ours, theirs, scope))
    return tuple(each for each in made if each.field.versions != NONE)


def _field(mine: Field | None, yours: Field | None, scope: set[int]) -> Merged:
    if yours is None:
        assert mine is not None
        versions = _range(mine.versions, NONE, scope)
        children = _merged(mine.fields, mine.fields, scope)
        return Merged(replace(mine, versions=versions, fields=()), mine, children)
    if mine is None:
        children = _merged((), yours.fields, scope)
        return Merged(replace(yours, fields=()), None, children)
    here = clip(yours.versions, scope)
    field = replace(
        mine,
        name=mine.name if mine.kafka_name == yours.kafka_name else yours.name,
        type=yours.type,
        versions=_range(mine.versions, yours.versions, scope),
        null=_range(mine.null, yours.null, here) if here else mine.null,
        tag=yours.tag,
        default=mine.default if default_of(mine) == default_of(yours) else yours.default,
        ignorable=yours.ignorable,
        key=yours.key,
        entity=yours.entity or mine.entity,
        classic=yours.classic,
        fields=(),
    )
    return Merged(field, mine, _merged(mine.fields, yours.fields, here))


def pairs(ours: Fields, theirs: Fields, scope: set[int]) -> list[Pair]:
    """
    Pair fields by Kafka's names, in the order of the release.

    A field missing in the release stays after its predecessor.
    """
    free = dict(enumerate(ours))
    out: list[Pair] = []
    for yours in theirs:
        same = [at for at, each in free.items() if each.kafka_name == yours.kafka_name]
        here = clip(yours.versions, scope)
        close = [at for at in same if clip(free[at].versions, scope) & here] or same
        out.append((free.pop(close[0]) if close else None, yours))
    for at, mine in sorted(free.items()):
        before = [place for place, (each, _) in enumerate(out) if at and each is ours[at - 1]]
        out.insert(before[0] + 1 if before else 0, (mine, None))
    return out


def clip(versions: Versions, scope: set[int]) -> set[int]:
    """Return the versions of a range within the scope."""
    return {each for each in scope if each in versions}


def default_of(field: Field) -> object:
    """Return a field's default; None if it is the zero of its type."""
    if field.default is ... and (field.type == "struct" or field.type.startswith("[]")):
        return ...
    return field.zero(0)


def _range(mine: Versions, yours: Versions, scope: set[int]) -> Versions:
    """Return a range: the release's in its versions, ours below."""
    if clip(mine, scope) == clip(yours, scope):
        return mine
    first = min(scope)
    older = mine.low < first and mine.low <= mine.high
    if not clip(yours, scope):
        return Versions(mine.low, min(mine.high, first - 1)) if older else NONE
    joins = older and mine.high >= first - 1 and first in yours
    return Versions(mine.low if joins else yours.low, yours.high)
