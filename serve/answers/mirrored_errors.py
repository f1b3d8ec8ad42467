"""Error responses to any request, with an error for each element in the request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from construct import Container

from cluster.fields.field_layout import StructField, StructLayout, ValueField
from cluster.fields.roles import layout_of
from dissector.protocol.field_roles import Role
from serve.forms.canonical_body import canonical_schema, canonical_version

_NO_NUMBER = {Role.OFFSET: -1, Role.BROKER_ID: -1, Role.PRODUCER_ID: -1}
"""Values of fields beside an error code."""


def error_answer(api_key: int, request: Mapping[str, Any], error: int) -> Container:
    """
    Return a canonical response with an error for each element of a canonical request.

    Args:
        api_key: Key of the API.
        request: The canonical request.
        error: The error code. It is set at the top level only if elements have no error codes.
    """
    version = canonical_version(api_key)
    asked = layout_of(canonical_schema(api_key, "request"), version)
    answered = layout_of(canonical_schema(api_key, "response"), version)
    body = _mirrored(asked, answered, request, error)
    has_elements = any(
        isinstance(member, StructField) and member.is_list and body[member.name]
        for member in answered.members
    )
    if has_elements and _has_nested_errors(answered):
        for member in answered.members:
            if isinstance(member, ValueField) and member.role is Role.ERROR:
                body[member.name] = 0
    return body


def _mirrored(
    asked: StructLayout, answered: StructLayout, request: Mapping[str, Any], error: int
) -> Container:
    body = Container()
    for member in answered.members:
        if isinstance(member, StructField) and member.is_list:
            body[member.name] = _elements(asked, member, request, error)
        elif isinstance(member, ValueField) and member.role is Role.ERROR:
            body[member.name] = error
        elif member.name in request and isinstance(member, ValueField):
            body[member.name] = request[member.name]
        else:
            role = member.role if isinstance(member, ValueField) else None
            zero = member.field.zero(answered.version)
            body[member.name] = _NO_NUMBER.get(role, zero) if role is not None else zero
    return body


def _elements(
    asked: StructLayout, answered: StructField, request: Mapping[str, Any], error: int
) -> list[Container]:
    """Return an element with the same keys for each element of the request."""
    roles = {key.role: key.name for key in answered.layout.keys}
    for member in asked.members:
        values = request.get(member.name)
        if isinstance(member, ValueField) and member.is_list and member.role in roles:
            return [
                _mirrored(_NOTHING, answered.layout, {roles[member.role]: each}, error)
                for each in values or ()
            ]
        if isinstance(member, StructField) and member.is_list:
            keys = {key.role: key.name for key in member.layout.keys}
            if not keys.keys() & roles.keys():
                continue
            renamed = {roles[role]: name for role, name in keys.items() if role in roles}
            return [
                _mirrored(
                    member.layout,
                    answered.layout,
                    {**each, **{new: each[old] for new, old in renamed.items() if old in each}},
                    error,
                )
                for each in values or ()
            ]
    return []


_NOTHING = StructLayout(0, (), (), ())


def _has_nested_errors(layout: StructLayout) -> bool:
    """Return whether elements of a response have error codes."""
    return any(
        isinstance(member, StructField)
        and (
            any(isinstance(m, ValueField) and m.role is Role.ERROR for m in member.layout.members)
            or _has_nested_errors(member.layout)
        )
        for member in layout.members
    )
