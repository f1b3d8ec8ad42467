"""
What role each field of a message has, and a walk over those of a body.

The roles come from one table (`role_table`). A plan is made from the declaration once a version; it
may be cut down to the roles that are wanted, so that a body is walked only where it matters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

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
from dissector.protocol.schema import Field, Schema, split
from replay.fields.field_layout import SCOPED, Branch, Leaf, Node, Place, Role, Scope
from replay.fields.role_table import BESIDE, ENDS, ENTITIES, KEY_NAMES, KEYS, NAMES, PLACES, TYPES
from replay.fields.walker import Values, Walk, compiled, compiled_values

_BY_NAME = {name: role for role, names in NAMES.items() for name in names.split()}
_EMBEDDED = {
    ConsumerProtocolSubscription: "ConsumerProtocolSubscription",
    ConsumerProtocolAssignment: "ConsumerProtocolAssignment",
    StickyUserData: "StickyUserData",
    CooperativeStickyUserData: "CooperativeStickyUserData",
    ConnectWorkerMetadata: "ConnectWorkerMetadata",
    ConnectAssignment: "ConnectAssignment",
}


def role_of(path: str, field: Field) -> Role:
    """Return the role of a field; `path` is its own, with API and kind: `Fetch.request.topics`."""
    parts = path.split(".")
    for start in range(len(parts)):
        role = PLACES.get(".".join(parts[start:]))
        if role is not None:
            return Role(role)
    found = TYPES.get(field.type) or ENTITIES.get(field.entity) or _BY_NAME.get(field.name)
    ends = (role for end, role in ENDS.items() if field.name.endswith(end))
    return Role(found or next(ends, "plain"))


@cache
def title(schema: Schema) -> str:
    """Return what paths in a declaration begin with: `Fetch.request`; embedded ones have a name."""
    found = None if schema.key is None else api(schema.key)
    if found is None:
        return _EMBEDDED.get(schema, "")
    return f"{found.name}.{'request' if found.request is schema else 'response'}"


@cache
def plan(schema: Schema, version: int, wanted: frozenset[Role] | None = None) -> Node:
    """Return the fields of a message at a version: all, or those that lead to wanted roles."""
    return _node(title(schema), schema.fields, version, wanted)


def _node(
    path: str, fields: tuple[Field, ...], version: int, wanted: frozenset[Role] | None
) -> Node:
    plain, tagged = split(fields, version)
    members: list[Leaf | Branch] = []
    leaves: list[Leaf] = []
    for field in plain + tagged:
        below = f"{path}.{field.name}"
        if field.fields:
            branch = Branch(field.name, field, _node(below, field.fields, version, wanted))
            if wanted is None or branch.node.members:
                members.append(branch)
            continue
        leaf = Leaf(field.name, role_of(below, field), field)
        leaves.append(leaf)
        if wanted is None or leaf.role in wanted:
            members.append(leaf)
    single = [leaf for leaf in leaves if not leaf.is_list and leaf.name not in BESIDE]
    scope = {leaf.role.value: leaf.name for leaf in reversed(single)}
    return Node(
        version,
        tuple(members),
        tuple((name, scope[name]) for name in SCOPED if name in scope),
        _keys(single),
    )


def _keys(leaves: list[Leaf]) -> tuple[Leaf, ...]:
    """Return what tells elements with these fields apart; nothing where only their place does."""
    declared = tuple(leaf for leaf in leaves if leaf.field.key)
    if any(leaf.role is Role.TOPIC for leaf in declared):
        ids = (leaf for leaf in leaves if leaf.role is Role.TOPIC_ID and leaf not in declared)
        return (*declared, *ids)
    if declared:
        return declared
    for roles in KEYS:
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
) -> Iterator[Place]:
    """
    Yield the fields of a body in wire order, with what they mean.

    Values may be replaced meanwhile (`Place.put`); the scope keeps what was there before.

    Args:
        schema: The declaration.
        version: The version of the body.
        body: The decoded body.
        wanted: Yield only these roles.
        scope: What encloses the body: for a response what its request says of group and member.
    """
    return _walk(schema, version, wanted)(body, scope or Scope())


@cache
def values(schema: Schema, version: int, wanted: frozenset[Role]) -> Values:
    """Return what yields the values of some roles in a body, but none that is empty or 0."""
    return compiled_values(plan(schema, version, wanted))


@cache
def _walk(schema: Schema, version: int, wanted: frozenset[Role] | None) -> Walk:
    return compiled(plan(schema, version, wanted), Place, Scope)
