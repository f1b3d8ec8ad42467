"""
Roles of the fields of each message, and walks over bodies by role.

A layout is derived from the declaration once per
version; it may be limited to wanted roles, so that walks skip the other parts of a body.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from cluster.fields.field_layout import (
    SCOPE_FIELDS,
    FieldValue,
    Scope,
    StructField,
    StructLayout,
    ValueField,
)
from cluster.fields.walker import (
    Map,
    RolesToMap,
    Values,
    Walk,
    compile_map,
    compile_values,
    compile_walk,
)
from dissector.protocol.apis import api
from dissector.protocol.embedded.membership.assignors import (
    CooperativeStickyUserData,
    StickyUserData,
)
from dissector.protocol.embedded.membership.connect_protocol import (
    ConnectAssignment,
    ConnectWorkerMetadata,
)
from dissector.protocol.embedded.membership.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from dissector.protocol.field_meanings import meaning_of
from dissector.protocol.field_roles import Role
from dissector.protocol.schema import Field, Schema, split_tagged

_KEY_ROLES = (
    (Role.TOPIC, Role.TOPIC_ID, Role.PARTITION),
    (Role.GROUP,),
    (Role.TRANSACTIONAL_ID,),
    (Role.MEMBER,),
    (Role.KIND, Role.RESOURCE),
    (Role.COORDINATOR_KEY,),
    (Role.CONFIG_NAME,),
    (Role.BROKER_ID,),
    (Role.PRODUCER_ID, Role.OFFSET),
    (Role.DIRECTORY,),
    (Role.OFFSET,),
)
"""
Roles that identify the elements of an array without declared key fields: the first entry with a
field of the element.
"""

KEY_NAMES = ("subtopology_id", "user", "mechanism", "batch_index", "key", "entity_type", "log_dir")
"""Fields that identify elements where neither declaration nor role does."""

_COMPANION_FIELDS = ("leader", "sink_topic")
"""Fields with the same role as another field beside them; the other one sets the scope."""

_EMBEDDED = {
    ConsumerProtocolSubscription: "ConsumerProtocolSubscription",
    ConsumerProtocolAssignment: "ConsumerProtocolAssignment",
    StickyUserData: "StickyUserData",
    CooperativeStickyUserData: "CooperativeStickyUserData",
    ConnectWorkerMetadata: "ConnectWorkerMetadata",
    ConnectAssignment: "ConnectAssignment",
}


@cache
def path_prefix(schema: Schema) -> str:
    """Return the start of a schema's paths: `Fetch.request`, or an embedded message's name."""
    found = None if schema.key is None else api(schema.key)
    if found is None:
        return _EMBEDDED.get(schema, "")
    return f"{found.name}.{'request' if found.request is schema else 'response'}"


@cache
def layout_of(schema: Schema, version: int, wanted: frozenset[Role] | None = None) -> StructLayout:
    """Return the layout of a message version: all fields, or only paths to wanted roles."""
    return _struct_layout(path_prefix(schema), schema.fields, version, wanted)


def _struct_layout(
    path: str, fields: tuple[Field, ...], version: int, wanted: frozenset[Role] | None
) -> StructLayout:
    plain, tagged = split_tagged(fields, version)
    members: list[ValueField | StructField] = []
    leaves: list[ValueField] = []
    for field in plain + tagged:
        below = f"{path}.{field.name}"
        if field.fields:
            branch = StructField(
                field.name, field, _struct_layout(below, field.fields, version, wanted)
            )
            if wanted is None or branch.layout.members:
                members.append(branch)
            continue
        leaf = ValueField(field.name, meaning_of(field, below).role, field)
        leaves.append(leaf)
        if wanted is None or leaf.role in wanted:
            members.append(leaf)
    single = [leaf for leaf in leaves if not leaf.is_list and leaf.name not in _COMPANION_FIELDS]
    scope = {leaf.role.value: leaf.name for leaf in reversed(single)}
    return StructLayout(
        version,
        tuple(members),
        tuple((name, scope[name]) for name in SCOPE_FIELDS if name in scope),
        _keys(single),
    )


def _keys(leaves: list[ValueField]) -> tuple[ValueField, ...]:
    """Return the fields that identify elements; none if only the position does."""
    declared = tuple(leaf for leaf in leaves if leaf.field.key)
    if any(leaf.role is Role.TOPIC for leaf in declared):
        ids = (leaf for leaf in leaves if leaf.role is Role.TOPIC_ID and leaf not in declared)
        return (*declared, *ids)
    if declared:
        return declared
    for roles in _KEY_ROLES:
        found = [leaf for role in roles for leaf in leaves if leaf.role == role][: len(roles)]
        if found:
            return tuple(found)
    return tuple(leaf for leaf in leaves if leaf.name in KEY_NAMES)


def walk(
    schema: Schema,
    version: int,
    body: Mapping[str, Any],
    wanted: frozenset[Role] | None = None,
    scope: Scope | None = None,
) -> Iterator[FieldValue]:
    """
    Yield the fields of a body in wire order, with role and scope.

    Values may be replaced during the walk (`FieldValue.replace`); scopes keep the original ones.

    Args:
        schema: The declaration.
        version: The version of the body.
        body: The decoded body.
        wanted: Yield only these roles.
        scope: The scope of the body; for a response, the group and member of its request.
    """
    return _walk(schema, version, wanted)(body, scope or Scope())


@cache
def value_walk(schema: Schema, version: int, wanted: frozenset[Role]) -> Values:
    """Return a function that yields the values of some roles in a body, except empty ones and 0."""
    return compile_values(layout_of(schema, version, wanted))


@cache
def _walk(schema: Schema, version: int, wanted: frozenset[Role] | None) -> Walk:
    return compile_walk(layout_of(schema, version, wanted), FieldValue, Scope)


@cache
def value_map(schema: Schema, version: int, wanted: frozenset[Role], roles: RolesToMap) -> Map:
    """Return a function that replaces the values of wanted roles in a body."""
    return compile_map(layout_of(schema, version, wanted), FieldValue, Scope, roles)
