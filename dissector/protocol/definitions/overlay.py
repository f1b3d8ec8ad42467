"""
Overlay definitions on a declaration: find the versions they change, and merge the two.

A definition's version that decodes the same bytes in the same way as the declaration changes
nothing, even with other field names: Kafka renames fields now and then.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from dissector.protocol.definitions.schemas import SourcedDefinition
from dissector.protocol.field_meanings import is_secret_name
from dissector.protocol.schema import Field, Schema, Versions, split_tagged
from dissector.protocol.secret_names import suggests_secret


@dataclass(frozen=True, slots=True)
class VersionSet(Versions):
    """A set of versions, which may have gaps."""

    numbers: frozenset[int] = field(default=frozenset(), kw_only=True)

    @classmethod
    def from_numbers(cls, versions: Iterable[int]) -> Versions:
        """Return the set of the given versions."""
        numbers = frozenset(versions)
        return cls(min(numbers), max(numbers), numbers=numbers) if numbers else Versions(1, 0)

    def __contains__(self, version: object) -> bool:
        return version in self.numbers


@dataclass(frozen=True, slots=True)
class OverlaidSchema:
    """
    A declaration merged with definitions.

    Attributes:
        schema: The message.
        sources: Version that a definition changed or added -> its JAR or folder.
    """

    schema: Schema
    sources: dict[int, str]


def overlay_schema(declared: Schema | None, found: Sequence[SourcedDefinition]) -> OverlaidSchema:
    """Return a declaration with the versions that definitions change or add."""
    base = declared or Schema(None, Versions(1, 0), Versions(1, 0))
    schema, sources = base, dict[int, str]()
    for each in found:
        given = each.definition.schema
        changed = [v for v in given.versions if not is_wire_compatible(schema, given, v)]
        if changed:
            schema = _merge(schema, with_secrets_marked(given, base), changed)
            sources |= dict.fromkeys(changed, each.source)
    return OverlaidSchema(schema, sources)


def is_renamed(declared: Schema, found: Sequence[SourcedDefinition]) -> bool:
    """Return whether definitions of another name encode all their versions as declared."""
    return all(
        is_wire_compatible(declared, each.definition.schema, version)
        for each in found
        for version in each.definition.schema.versions
    )


def is_wire_compatible(one: Schema, other: Schema, version: int) -> bool:
    """
    Return whether `one` decodes a version as `other` does.

    Fields may have other names, and `one` may have tagged fields that `other` lacks.
    """
    if version not in one.versions or version not in other.versions:
        return False
    same = (version in one.flexible) == (version in other.flexible)
    return same and _compatible_fields(one.fields, other.fields, version)


def _compatible_fields(one: tuple[Field, ...], other: tuple[Field, ...], version: int) -> bool:
    plain, tagged = split_tagged(one, version)
    other_plain, other_tagged = split_tagged(other, version)
    # A tagged field that only one of them declares changes no byte of the other fields.
    by_tag = {each.tag: each for each in tagged}
    if len(plain) != len(other_plain) or any(each.tag not in by_tag for each in other_tagged):
        return False
    pairs = [*zip(plain, other_plain, strict=True), *((by_tag[b.tag], b) for b in other_tagged)]
    names, others = {a.kafka_name for a, _ in pairs}, {b.kafka_name for _, b in pairs}
    for a, b in pairs:
        moved = a.kafka_name in others or b.kafka_name in names
        if a.kafka_name != b.kafka_name and moved:
            return False
        if not _compatible_field(a, b, version):
            return False
    return True


def _compatible_field(a: Field, b: Field, version: int) -> bool:
    if (a.type, a.tag, a.classic) != (b.type, b.tag, b.classic):
        return False
    if a.type == "struct" and (version in a.null) != (version in b.null):
        return False
    if a.tag is not None and not a.fields and a.zero(version) != b.zero(version):
        return False
    return _compatible_fields(a.fields, b.fields, version)


def _merge(base: Schema, given: Schema, changed: list[int]) -> Schema:
    """Return `base` with the changed versions of `given`."""
    unchanged = [version for version in base.versions if version not in changed]
    flexible = [v for v in unchanged if v in base.flexible]
    flexible += [v for v in changed if v in given.flexible]
    fields = _restrict_versions(base.fields, unchanged) + _restrict_versions(given.fields, changed)
    return Schema(
        given.key,
        VersionSet.from_numbers(unchanged + changed),
        VersionSet.from_numbers(flexible),
        fields,
    )


def _restrict_versions(fields: tuple[Field, ...], versions: list[int]) -> tuple[Field, ...]:
    """Return the fields that exist in the given versions, restricted to these."""
    found = ((each, [v for v in versions if v in each.versions]) for each in fields)
    return tuple(
        replace(each, versions=VersionSet.from_numbers(here)) for each, here in found if here
    )


def with_secrets_marked(given: Schema, declared: Schema) -> Schema:
    """
    Return a message of a definition with its secret fields marked.

    A field that is declared too is as secret as there, and names the same kind of entity. Other
    fields have not been reviewed: texts and bytes among them are secret if their names suggest it.
    """
    return replace(given, fields=_mark_secrets(given.fields, declared.fields), _codecs={})


def _mark_secrets(fields: tuple[Field, ...], known: tuple[Field, ...]) -> tuple[Field, ...]:
    by_name: dict[str, list[Field]] = {}
    for each in known:
        by_name.setdefault(each.name, []).append(each)
    return tuple(_mark_secret_field(each, by_name.get(each.name, [])) for each in fields)


def _mark_secret_field(each: Field, known: list[Field]) -> Field:
    below = tuple(inner for one in known for inner in one.fields)
    holds = each.type.removeprefix("[]") in ("string", "bytes")
    same = [one for one in known if one.type == each.type]
    secret = any(one.secret for one in known)
    if not same and holds:
        secret |= suggests_secret(each.name.replace("_", ".")) or is_secret_name(each.name)
    entity = each.entity or next((one.entity for one in same if one.entity), "")
    return replace(each, secret=secret, entity=entity, fields=_mark_secrets(each.fields, below))
