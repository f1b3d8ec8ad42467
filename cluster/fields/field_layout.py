"""Layout of a message version with the role of each field, and fields located in a body."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from dissector.protocol.field_roles import Role
from dissector.protocol.schema import Field


@dataclass(frozen=True, slots=True)
class ValueField:
    """A field without subfields: its name, role and declaration."""

    name: str
    role: Role
    field: Field

    @property
    def is_list(self) -> bool:
        """Whether it is an array of scalars."""
        return self.field.type.startswith("[]")


@dataclass(frozen=True, slots=True)
class StructField:
    """A struct or an array of structs: its name, declaration and layout."""

    name: str
    field: Field
    layout: StructLayout

    @property
    def is_list(self) -> bool:
        """Whether it is an array."""
        return self.field.type == "[]struct"


@dataclass(frozen=True, slots=True)
class StructLayout:
    """
    The fields of one struct in one version.

    Attributes:
        version: The version of the message.
        members: The wanted fields, in wire order.
        scope: Attribute of `Scope` -> name of the field that sets it.
        keys: The fields that identify an element, if the struct is the element of an array.
    """

    version: int
    members: tuple[ValueField | StructField, ...]
    scope: tuple[tuple[str, str], ...]
    keys: tuple[ValueField, ...]


class Scope:
    """The context of a field: the nearest enclosing topic, partition, group, ...; None if unset."""

    topic: str | None = None
    topic_id: UUID | None = None
    partition: int | None = None
    group: str | None = None
    member: str | None = None
    transactional_id: str | None = None
    producer_id: int | None = None
    producer_epoch: int | None = None
    kind: int | None = None

    def __init__(self, outer: Scope | None = None, **given: Any) -> None:
        if outer is not None:
            self.__dict__.update(outer.__dict__)
        self.__dict__.update(given)

    def inside(self, layout: StructLayout, body: Mapping[str, Any]) -> Scope:
        """Return the scope of the fields of a struct nested in this scope."""
        if not layout.scope:
            return self
        scope = Scope(self)
        for name, field in layout.scope:
            if field in body:
                scope.__dict__[name] = body[field]
        return scope


SCOPE_FIELDS = tuple(Scope.__annotations__)
"""The attributes of a scope."""


@dataclass(slots=True)
class FieldValue:
    """
    A field located in a body.

    Attributes:
        path: `topics[0].partitions[2].fetch_offset`.
        role: The role of the field.
        field: The declaration.
        value: The value; one element if the field is an array of scalars.
        parent: The container or list that holds the value.
        key: Name or index of the value in the parent.
        scope: The scope of the field.
    """

    path: str
    role: Role
    field: Field
    value: Any
    parent: Any
    key: str | int
    scope: Scope

    def replace(self, value: Any) -> None:
        """Replace the value in the body."""
        self.parent[self.key] = value


def records_field(layout: StructLayout) -> ValueField | None:
    """Return the field `records` of a struct; None if it has no record batches."""
    field = next((each for each in layout.members if each.name == "records"), None)
    return field if isinstance(field, ValueField) and field.role is Role.RECORDS else None


def without_arrays(layout: StructLayout) -> StructLayout:
    """Return the layout of a struct without its structs and arrays of structs."""
    fields = tuple(member for member in layout.members if isinstance(member, ValueField))
    return StructLayout(layout.version, fields, layout.scope, layout.keys)
