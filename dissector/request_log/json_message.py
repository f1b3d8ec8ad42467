"""
Messages that Kafka's JSON converters wrote, back to bytes.

The converters name each field as its definition does, with a small first letter, write bytes in
base64 and ids in base64url, and of records only their size (`recordsSizeInBytes`), or nothing.

Source: Kafka, generator/MessageGenerator (JsonConverterGenerator), core RequestConvertToJson;
KAFKA-10525.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any
from uuid import UUID

from dissector.errors import EncodeError
from dissector.protocol.codecs.codec import Codec
from dissector.protocol.schema import Field, Schema

_RECORDS_SIZE = "recordsSizeInBytes"
_MOST_RECORD_BYTES = 1 << 31

Convert = Callable[[Any, "JsonNotes"], Any]
"""Returns a value of JSON in the form that codecs take."""

RecordsOf = Callable[[int], bytes]
"""Returns records in place of logged ones, of which only the size is known."""


class JsonMessageError(Exception):
    """A message that can't be encoded; the text names the field."""


class JsonNotes:
    """
    What bytes can't hold of a message.

    Attributes:
        unknown: Names of fields that the declaration lacks.
        record_bytes: Sizes of its records, in the order of its partitions.
    """

    __slots__ = ("record_bytes", "unknown")

    def __init__(self) -> None:
        self.unknown: list[str] = []
        self.record_bytes: list[int] = []


@dataclass(frozen=True, slots=True)
class JsonMessage:
    """
    The encoder of one version of a message.

    Attributes:
        codec: Encodes it, by the names of JSON.
        prepare: Makes of a parsed object what the codec takes, in place.
    """

    codec: Codec
    prepare: Convert

    @classmethod
    def of(
        cls, schema: Schema, version: int, records_of: RecordsOf = lambda size: b""
    ) -> JsonMessage:
        """Return the encoder of a declared version; `records_of` makes up records."""
        named = replace(schema, fields=tuple(map(_json_named, schema.fields)), _codecs={})
        return cls(named.codec(version), _struct(schema.fields, version, records_of))

    def encode(self, value: Any, notes: JsonNotes) -> bytes:
        """
        Encode a parsed object, which is changed.

        Raises:
            JsonMessageError: It does not fit the declaration.
        """
        try:
            return self.codec.build(self.prepare(value, notes))
        except EncodeError as error:
            raise JsonMessageError(str(error)) from None
        except (binascii.Error, ValueError, TypeError, AttributeError, KeyError) as error:
            raise JsonMessageError(f"{type(error).__name__}: {error}") from None


def json_name(field: Field) -> str:
    """Return the name of a field in JSON."""
    name = field.kafka_name
    return name[:1].lower() + name[1:]


def _json_named(field: Field) -> Field:
    return replace(field, name=json_name(field), fields=tuple(map(_json_named, field.fields)))


def _struct(fields: tuple[Field, ...], version: int, records_of: RecordsOf) -> Convert:
    here = [each for each in fields if version in each.versions]
    names = frozenset(json_name(each) for each in here if each.type != "records")
    records = next((json_name(each) for each in here if each.type == "records"), "")
    usual = names | {_RECORDS_SIZE} if records else names
    known = usual | {records} if records else usual
    required = {json_name(each) for each in here if each.tag is None and each.type != "records"}
    converters = [
        (json_name(each), convert)
        for each in here
        if (convert := _converter(each, version, records_of)) is not None
    ]

    def prepare(value: Any, notes: JsonNotes) -> Any:
        if value.__class__ is not dict:
            raise JsonMessageError(f"{str(value)[:40]!r} is not an object")
        names = value.keys()
        if names != usual and not (required <= names <= known):
            _mend(value, here, notes)
        if records:
            size = int(value.get(_RECORDS_SIZE) or 0)
            if not 0 <= size < _MOST_RECORD_BYTES:
                raise JsonMessageError(f"{_RECORDS_SIZE} is no size")
            notes.record_bytes.append(size)
            value[records] = None if value.get(records, b"") is None else records_of(size)
        for name, convert in converters:
            found = value.get(name)
            if found is not None:
                value[name] = convert(found, notes)
        return value

    return prepare


def _mend(value: dict[str, Any], fields: list[Field], notes: JsonNotes) -> None:
    """
    Give a struct the fields that it lacks.

    Fields that a release named otherwise are known by their place: the converters keep the order.
    """
    known = {json_name(each) for each in fields}
    others = [name for name in value if name not in known and name != _RECORDS_SIZE]
    plain = [each for each in fields if each.tag is None and each.type != "records"]
    missing = [each for each in plain if json_name(each) not in value]
    if len(others) == len(missing):
        for name, each in zip(others, missing, strict=True):
            value[json_name(each)] = value.pop(name)
        return
    notes.unknown += others
    for each in missing:
        value[json_name(each)] = _zero(each)


def _zero(field: Field) -> Any:
    if field.default is not ...:
        return str(field.default) if field.type == "uuid" else field.default
    if field.type.startswith("[]"):
        return []
    zeros = {"bool": False, "float64": 0.0, "string": "", "bytes": "", "uuid": None, "struct": {}}
    return zeros.get(field.type, 0)


def _converter(field: Field, version: int, records_of: RecordsOf) -> Convert | None:
    """Return how the value of a field is prepared; None: as it is."""
    if field.type in ("struct", "[]struct"):
        convert: Convert | None = _struct(field.fields, version, records_of)
    else:
        convert = _SCALARS.get(field.type.removeprefix("[]"))
    if convert is None or not field.type.startswith("[]"):
        return convert
    each_of = convert

    def prepare(value: Any, notes: JsonNotes) -> Any:
        return [each_of(each, notes) for each in value]

    return prepare


@lru_cache(maxsize=4096)
def _uuid(text: str) -> UUID:
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def _number(value: Any, notes: JsonNotes) -> float:
    return float(value)


_SCALARS: dict[str, Convert] = {
    "uuid": lambda value, notes: _uuid(value),
    "bytes": lambda value, notes: base64.b64decode(value, validate=True),
    "float64": _number,
}
