"""
Nulls in fields that are not nullable: codecs decode them, Kafka's readers raise an exception.

Code that interprets bodies treats such a message as unreadable; code that shows them does not.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from dissector.protocol.schema import Field, Schema

if TYPE_CHECKING:
    from construct import Container

    from dissector.protocol.messages import Message

_LENGTH_FIELDS = ("string", "bytes", "records")


class _Struct(NamedTuple):
    """
    The fields of a struct that can hold undeclared nulls.

    Attributes:
        required: Fields that are not nullable.
        texts: Arrays of strings.
        structs: Structs, with their own fields.
        arrays: Arrays of structs, with the fields of each.
    """

    required: tuple[str, ...]
    texts: tuple[str, ...]
    structs: tuple[tuple[str, _Struct], ...]
    arrays: tuple[tuple[str, _Struct], ...]

    def has_null(self, values: Any) -> bool:
        """Return whether a null is in the values of a struct."""
        for name in self.required:
            if values[name] is None:
                return True
        for name in self.texts:
            if None in (values[name] or ()):
                return True
        for name, inner in self.structs:
            if values[name] is not None and inner.has_null(values[name]):
                return True
        for name, inner in self.arrays:
            for each in values[name] or ():
                if inner.has_null(each):
                    return True
        return False


def readable_body(message: Message | None) -> Container | None:
    """Return the body of a message; None if there is none, or it has an undeclared null."""
    if message is None or message.body is None or has_undeclared_null(message):
        return None
    return message.body


def has_undeclared_null(message: Message) -> bool:
    """Return whether the body has a null in a field that is not nullable in its version."""
    return _has_null(message, _LENGTH_FIELDS)


def has_null_list(message: Message) -> bool:
    """Return whether the body has a null for a list that is not nullable; see `holds_null_list`."""
    return _has_null(message, ())


def _has_null(message: Message, types: tuple[str, ...]) -> bool:
    schema, version = message.schema, message.api_version
    if message.body is None or schema is None or version is None:
        return False
    return _checked_fields(schema, version, types).has_null(message.body)


def holds_null_list(schema: Schema, version: int, body: Container) -> bool:
    """
    Return whether a body of a version has a null for a list that is not nullable.

    Texts are left out: librdkafka's mock answers FindCoordinator with an error and a null host.
    Source: librdkafka, rdkafka_mock_handlers.c (rd_kafka_mock_handle_FindCoordinator).
    """
    return _checked_fields(schema, version, ()).has_null(body)


@lru_cache(1024)
def _checked_fields(schema: Schema, version: int, types: tuple[str, ...]) -> _Struct:
    """Return the fields that are checked: lists, and those of some types with a length."""
    return _struct(schema.fields, version, types)


def _struct(fields: tuple[Field, ...], version: int, types: tuple[str, ...]) -> _Struct:
    here = [each for each in fields if version in each.versions]
    nested = [(each, _struct(each.fields, version, types)) for each in here if each.fields]
    nested = [(each, inner) for each, inner in nested if any(inner)]
    return _Struct(
        tuple(each.name for each in here if _is_required(each, version, types)),
        tuple(each.name for each in here if each.type == "[]string" and "string" in types),
        tuple((each.name, inner) for each, inner in nested if each.type == "struct"),
        tuple((each.name, inner) for each, inner in nested if each.type == "[]struct"),
    )


def _is_required(each: Field, version: int, types: tuple[str, ...]) -> bool:
    has_length = each.type in types or each.type.startswith("[]")
    return has_length and version not in each.null
