"""Merges the parts of a request that went to several brokers, or their responses."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from construct import Container

from dissector.protocol.schema import Schema
from replay.fields.field_layout import Branch, Leaf, Node, Role
from replay.fields.roles import plan


def merge(schema: Schema, version: int, bodies: Sequence[Container]) -> Container:
    """
    Merge the responses to the parts of a request into one, or the parts into one request.

    Arrays are concatenated, with elements of equal key fields merged; of errors the first is taken,
    of throttle times the longest, of all other fields the value in the first body.
    """
    merged = bodies[0]
    node = plan(schema, version)
    for body in bodies[1:]:
        merged = _joined(node, merged, body)
    return merged


def _joined(node: Node, first: Container, second: Container) -> Container:
    joined = Container(first)
    for member in node.members:
        ours, theirs = first.get(member.name), second.get(member.name)
        if member.is_list:
            joined[member.name] = _joined_lists(member, ours, theirs)
        elif isinstance(member, Leaf):
            if member.role is Role.THROTTLE:
                joined[member.name] = max(ours or 0, theirs or 0)
            elif member.role in (Role.ERROR, Role.ERROR_MESSAGE):
                joined[member.name] = ours or theirs
    return joined


def _joined_lists(
    member: Leaf | Branch, ours: list[Any] | None, theirs: list[Any] | None
) -> list[Any] | None:
    if not ours or not theirs:
        return ours or theirs or ours
    keys = member.node.keys if isinstance(member, Branch) else ()
    if not isinstance(member, Branch) or not keys:
        return ours + theirs
    joined = list(ours)
    places = {_key(keys, each): place for place, each in enumerate(ours)}
    for each in theirs:
        place = places.get(_key(keys, each))
        if place is None:
            joined.append(each)
        else:
            joined[place] = _joined(member.node, joined[place], each)
    return joined


def _key(keys: tuple[Leaf, ...], element: Mapping[str, Any]) -> Hashable:
    return tuple(element.get(leaf.name) for leaf in keys)
