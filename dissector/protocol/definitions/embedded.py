"""Definitions of data embedded in messages and records, which override the built-in ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from dissector.protocol.context import current, per_schemas
from dissector.protocol.definitions.overlay import OverlaidSchema, overlay_schema
from dissector.protocol.definitions.schemas import Schemas, SourcedDefinition
from dissector.protocol.schema import Field, Schema, Versions

UNDECLARED = Schema(None, Versions(1, 0), Versions(1, 0))
"""Placeholder for the declaration of a message that only definitions describe."""

_KINDS = ("data", "header", "metadata", "coordinator-key", "coordinator-value")
_DEFAULT_TOPICS = {"metadata": "__cluster_metadata", "coordinator-key": "__consumer_offsets"}


class RecordDefinition(NamedTuple):
    """A record type in the definitions: its topic, its number, its name."""

    topic: str
    number: int
    name: str


@per_schemas
def overlay_embedded(name: str, declared: Schema) -> OverlaidSchema:
    """Return an embedded message's declaration, by name, with its changed or added versions."""
    schemas = current()
    if schemas is None:
        return OverlaidSchema(declared, {})
    found = [each for kind in _KINDS for each in schemas.with_name(kind, name)]
    return overlay_schema(declared, [_key_with_number(each) for each in found])


def record_definitions(schemas: Schemas, topics: Mapping[str, str]) -> list[RecordDefinition]:
    """
    Return the record types in the definitions.

    Args:
        schemas: The definitions.
        topics: Name of a built-in record definition -> topic of its records. Definitions in the
            same JAR or folder as one of these belong to the same topic.
    """
    by_container: dict[str, str] = {}
    for each in schemas.all():
        topic = topics.get(each.definition.name)
        if topic is not None:
            by_container.setdefault(each.container, topic)
    found = []
    for each in schemas.all():
        kind, key = each.definition.kind, each.definition.schema.key
        if kind in _DEFAULT_TOPICS and key is not None:
            topic = by_container.get(each.container, _DEFAULT_TOPICS[kind])
            name = each.definition.name.removesuffix("Key" if kind != "metadata" else "")
            found.append(RecordDefinition(topic, key, name))
    return found


def _key_with_number(each: SourcedDefinition) -> SourcedDefinition:
    """
    Return the definition of a coordinator's record key with its number as its version.

    It is written like that, and before 4.0 Kafka defined it so: with a version, without a number.
    """
    definition = each.definition
    number = definition.schema.key
    if definition.kind != "coordinator-key" or number is None:
        return each
    only = Versions(number, number)
    schema = Schema(
        number,
        only,
        only if 0 in definition.schema.flexible else Versions(1, 0),
        _renumbered(definition.schema.fields, only),
    )
    return each._replace(definition=replace(definition, schema=schema))


def _renumbered(fields: tuple[Field, ...], only: Versions) -> tuple[Field, ...]:
    return tuple(
        replace(
            each,
            versions=only,
            null=only if 0 in each.null else Versions(1, 0),
            fields=_renumbered(each.fields, only),
        )
        for each in fields
        if 0 in each.versions
    )
