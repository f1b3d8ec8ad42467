"""Merges the parts of a request for several brokers, or the responses to them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from construct import Container

from cluster.fields.field_layout import StructField, StructLayout, ValueField
from cluster.fields.roles import layout_of
from dissector.protocol.field_roles import Role
from dissector.protocol.schema import Schema


def merge(schema: Schema, version: int, bodies: Sequence[Container]) -> Container:
    """
    Merge the responses to the parts of a request into one, or the parts into one request.

    Arrays are concatenated, with elements of equal key fields merged; of errors the first is taken,
    of throttle times the longest, of all other fields the value in the first body.
    """
    merged = bodies[0]
    layout = layout_of(schema, version)
    for body in bodies[1:]:
        merged = _merge_structs(layout, merged, body)
    return merged


def _merge_structs(layout: StructLayout, first: Container, second: Container) -> Container:
    joined = Container(first)
    for member in layout.members:
        first_value, second_value = first.get(member.name), second.get(member.name)
        if member.is_list:
            joined[member.name] = _merge_arrays(member, first_value, second_value)
        elif isinstance(member, ValueField):
            if member.role is Role.THROTTLE:
                joined[member.name] = max(first_value or 0, second_value or 0)
            elif member.role in (Role.ERROR, Role.ERROR_MESSAGE):
                joined[member.name] = first_value or second_value
    return joined


def _merge_arrays(
    member: ValueField | StructField, first: list[Any] | None, second: list[Any] | None
) -> list[Any] | None:
    if not first or not second:
        return first or second or first
    keys = member.layout.keys if isinstance(member, StructField) else ()
    if not isinstance(member, StructField) or not keys:
        return first + second
    joined = list(first)
    places = {_key(keys, each): place for place, each in enumerate(first)}
    for each in second:
        place = places.get(_key(keys, each))
        if place is None:
            joined.append(each)
        else:
            joined[place] = _merge_structs(member.layout, joined[place], each)
    return joined


def _key(keys: tuple[ValueField, ...], element: Mapping[str, Any]) -> Hashable:
    return tuple(element.get(leaf.name) for leaf in keys)
