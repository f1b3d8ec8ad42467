"""The addresses of brokers in responses, to which clients connect next."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeAlias

from cluster.fields.field_layout import StructField, StructLayout
from cluster.fields.roles import layout_of
from dissector.protocol.field_roles import Role
from dissector.protocol.schema import Schema

Address: TypeAlias = tuple[str, int]

ReplaceAddress: TypeAlias = Callable[[int | None, Address], Address | None]
"""Returns what replaces the address of a node (None: without an id), or None to keep it."""

_NAMES = "node_id", "broker_id"
_WANTED = frozenset({Role.HOST, Role.PORT, Role.BROKER_ID})


def replace_addresses(
    schema: Schema, version: int, body: Mapping[str, Any], replace: ReplaceAddress
) -> bool:
    """
    Replace the addresses in a response; return whether one has changed.

    Args:
        schema: The declaration of the response.
        version: Its version.
        body: Its decoded body, which is changed.
        replace: Returns the new addresses.
    """
    return _replace(layout_of(schema, version, _WANTED), body, replace)


@cache
def advertises_nodes(schema: Schema, version: int) -> bool:
    """Return whether a response may have addresses of nodes, beside their ids."""
    return _has_nodes(layout_of(schema, version, _WANTED))


def _has_nodes(layout: StructLayout) -> bool:
    names = {member.name for member in layout.members}
    return ({"host", "port"} <= names and not names.isdisjoint(_NAMES)) or any(
        _has_nodes(member.layout) for member in layout.members if isinstance(member, StructField)
    )


def _replace(layout: StructLayout, body: Any, replace: ReplaceAddress) -> bool:
    names = {member.name for member in layout.members}
    has_changed = False
    if {"host", "port"} <= names and body.get("host"):
        node = next((body[name] for name in _NAMES if name in names), None)
        address = body["host"], body["port"]
        found = replace(node, address)
        if found is not None and found != address:
            body["host"], body["port"] = found
            has_changed = True
    for member in layout.members:
        if isinstance(member, StructField):
            value = body.get(member.name)
            for each in value if isinstance(value, list) else [value] if value else []:
                has_changed |= _replace(member.layout, each, replace)
    return has_changed
