"""
The notation of declared messages in `apis/` and `embedded/`.

A declaration is data: `Int32("timeout_ms", "1+")` is a `Field`, `Array("topics")[...]` a field with
children, `message(0, "0-13", flexible="9+")[...]` a `Schema`. Versions are written as Kafka writes
them: `3+`, `0-12`, `4`. Decoding is elsewhere; `Schema.codec` turns one version into the Constructs
of `wire`, which do and are imported only then. Also derived from a declaration:
`Schema.iter_fields` (the `schema` command), `spans` (byte spans, for the tree and hex views),
`program`, and the values that the property tests draw.

Source: Kafka's message definitions and their README (clients/src/main/resources/common/message).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from dataclasses import fields as fields_of
from functools import cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from dissector.errors import DecodeError
from dissector.protocol.field_meanings import is_secret_name

if TYPE_CHECKING:
    from construct import Construct

    from dissector.protocol.codecs.codec import Codec
    from dissector.protocol.codecs.structs import Fields

Default = int | float | bool | str | None


@dataclass(frozen=True, slots=True)
class Versions:
    """A range of versions, both ends included; none at all when `low > high`."""

    low: int
    high: int

    @classmethod
    def of(cls, text: str) -> Versions:
        """Read `3+`, `0-12`, `4` or `none`."""
        if text == "none":
            return cls(1, 0)
        low, dash, high = text.rstrip("+").partition("-")
        if dash:
            return cls(int(low), int(high))
        return cls(int(low), 32767 if text.endswith("+") else int(low))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.low <= version <= self.high

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.low, self.high + 1))


@dataclass(frozen=True, slots=True)
class Field:
    """
    One declared field, over all versions.

    Attributes:
        name: Kafka's name in snake_case.
        type: Kafka's type name: `int32`, `string`, `records`, `struct`, `[]struct`, `[]int32`, ...
        versions: The versions with the field.
        null: Versions in which null is allowed.
        tag: Number of the tagged field; None for a field in wire order.
        default: The value that readers assume if it is absent; ellipsis for the type's own default.
        ignorable: A writer may drop a value that the version can't carry.
        key: The field identifies the elements of its array.
        entity: The kind of name that it holds: `topicName`, `groupId`, `brokerId`, `producerId`,
            `transactionalId`; or empty.
        secret: Masked in every output unless secrets are requested: by `field_meanings`, or in a
            user's definition.
        classic: A text that keeps its int16 length in flexible versions (the client id of the
            header).
        kafka: Kafka's own name, if it does not follow from `name`.
        fields: The children of a struct or an array of structs.
    """

    name: str
    type: str
    versions: Versions = Versions(0, 32767)
    null: Versions = Versions(1, 0)
    tag: int | None = None
    default: Any = ...
    ignorable: bool = False
    key: bool = False
    entity: str = ""
    secret: bool = False
    classic: bool = False
    kafka: str = ""
    fields: tuple[Field, ...] = ()
    _hash: int = field(default=0, init=False, repr=False, compare=False)

    def __hash__(self) -> int:
        """Return the hash, computed once: many caches have fields, with all below, as keys."""
        if not self._hash:
            values = (getattr(self, each.name) for each in fields_of(self) if each.compare)
            object.__setattr__(self, "_hash", hash(tuple(values)) or 1)
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave the hash behind: texts have another one in each process."""
        return type(self), tuple(getattr(self, each.name) for each in fields_of(self) if each.init)

    def __getitem__(self, fields: Field | tuple[Field, ...]) -> Field:
        """Give the field its children."""
        return replace(self, fields=fields if isinstance(fields, tuple) else (fields,))

    @property
    def kafka_name(self) -> str:
        """The name in Kafka's own definitions, CamelCase."""
        return self.kafka or "".join(part[:1].upper() + part[1:] for part in self.name.split("_"))

    def zero(self, version: int) -> Any:
        """Return a new object of the value that readers assume if the field is absent."""
        if self.default is not ...:
            return UUID(self.default) if self.type == "uuid" else self.default
        if self.type.startswith("[]"):
            return []
        if self.type == "struct":
            from construct import Container

            return Container(
                {f.name: f.zero(version) for f in self.fields if version in f.versions}
            )
        return _ZERO[self.type]


_ZERO: dict[str, Any] = {
    "bool": False,
    "float64": 0.0,
    "string": "",
    "bytes": b"",
    "records": None,
    "uuid": UUID(int=0),
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint16", "uint32"), 0),
}


@dataclass(frozen=True, slots=True)
class FieldType:
    """A type of the notation: calling it with a name and versions returns a `Field`."""

    type: str

    def __call__(
        self,
        name: str,
        versions: str = "0+",
        *,
        null: str = "none",
        tag: int | None = None,
        default: Any = ...,
        ignorable: bool = False,
        key: bool = False,
        entity: str = "",
        classic: bool = False,
        kafka: str = "",
        of: FieldType | None = None,
    ) -> Field:
        """Declare a field; `of` is the type of an array's elements if they are not structs."""
        return Field(
            name=name,
            type=self.type + (of or Struct).type if self is Array else self.type,
            versions=Versions.of(versions),
            null=Versions.of(null),
            tag=tag,
            default=default,
            ignorable=ignorable,
            key=key,
            entity=entity,
            secret=self.type == "bytes" and is_secret_name(name),
            classic=classic,
            kafka=kafka,
        )


Bool = FieldType("bool")
Int8, Int16, Int32, Int64 = (
    FieldType("int8"),
    FieldType("int16"),
    FieldType("int32"),
    FieldType("int64"),
)
Uint16, Uint32, Float64 = FieldType("uint16"), FieldType("uint32"), FieldType("float64")
String, Bytes, Records, Uuid = (
    FieldType("string"),
    FieldType("bytes"),
    FieldType("records"),
    FieldType("uuid"),
)
Struct = FieldType("struct")
Array = FieldType("[]")


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """
    A message over all its versions.

    Attributes:
        key: The API key (KRaft record type, coordinator record type); None without one.
        versions: The versions that ever existed.
        flexible: The versions with compact lengths and tag sections (KIP-482).
        fields: In wire order.
    """

    key: int | None
    versions: Versions
    flexible: Versions
    fields: tuple[Field, ...] = ()
    _codecs: dict[int, Codec] = field(default_factory=dict, repr=False)

    def __getitem__(self, fields: Field | tuple[Field, ...]) -> Schema:
        """Give the message its fields."""
        return replace(self, fields=fields if isinstance(fields, tuple) else (fields,), _codecs={})

    def codec(self, version: int) -> Codec:
        """
        Return the Construct that parses and builds this version.

        Raises:
            DecodeError: The version is not declared.
        """
        codec = self._codecs.get(version)
        if codec is None:
            if version not in self.versions:
                raise DecodeError(f"version {version} is not known (known: {self.versions_text})")
            from dissector.protocol.codecs.codec import Codec

            construct = _struct_construct(self.fields, version, version in self.flexible)
            codec = self._codecs[version] = Codec(construct)
        return codec

    def closest_version(self, version: int) -> int | None:
        """
        Return the version that decodes a message of the given version; None if none can.

        A version newer than all known ones is decoded as the newest known one.
        """
        low, high = self.versions.low, self.versions.high
        return min(version, high) if low <= version and low <= high else None

    @property
    def versions_text(self) -> str:
        """The versions as text: `0-13`."""
        low, high = self.versions.low, self.versions.high
        if low > high:
            return "none"
        return str(low) if low == high else f"{low}-{high}"

    def iter_fields(self, version: int) -> Iterator[tuple[str, Field]]:
        """Yield (Kafka's path, field) in wire order; tagged fields of each level are last."""
        return _iter_fields("", self.fields, version)


def _iter_fields(
    prefix: str, fields: tuple[Field, ...], version: int
) -> Iterator[tuple[str, Field]]:
    plain, tagged = split_tagged(fields, version)
    for each in plain + tagged:
        yield prefix + each.kafka_name, each
        yield from _iter_fields(f"{prefix}{each.kafka_name}.", each.fields, version)


def split_tagged(fields: tuple[Field, ...], version: int) -> tuple[list[Field], list[Field]]:
    """Return the fields of a version: the untagged ones in wire order, the tagged ones by tag."""
    here = [f for f in fields if version in f.versions]
    tagged = [(f.tag, f) for f in here if f.tag is not None]
    return [f for f in here if f.tag is None], [f for _, f in sorted(tagged, key=lambda t: t[0])]


def message(key: int | None, versions: str, flexible: str = "none") -> Schema:
    """Begin the declaration of a message: its API key, versions and flexible versions."""
    return Schema(key, Versions.of(versions), Versions.of(flexible))


@cache
def _primitive_construct(word: str, flexible: bool) -> Construct:
    """Return the Construct of a type that has no children."""
    from dissector.protocol.codecs import wire

    length32: Construct = wire.compact_length if flexible else wire.int32
    match word:
        case "string":
            return wire.Text(wire.compact_length if flexible else wire.int16)
        case "bytes" | "records":
            return wire.Bytes(length32)
        case "bool":
            return wire.boolean
        case "uuid":
            return wire.uuid16
        case _ if word.startswith("[]"):
            return wire.CountedArray(length32, _primitive_construct(word[2:], flexible))
        case _:
            return getattr(wire, word)


def construct_of(each: Field, version: int, flexible: bool) -> Construct:
    """Return the Construct of one field at one version."""
    from dissector.protocol.codecs import structs, wire

    if each.type == "struct":
        struct = _struct_construct(each.fields, version, flexible)
        if version not in each.null:
            return struct
        return structs.Nullable(struct) if each.tag is None else structs.NullableTagged(struct)
    if each.type == "[]struct":
        length = wire.compact_length if flexible else wire.int32
        return wire.CountedArray(length, _struct_construct(each.fields, version, flexible))
    return _primitive_construct(each.type, flexible and not each.classic)


def _struct_construct(fields: tuple[Field, ...], version: int, flexible: bool) -> Fields:
    from dissector.protocol.codecs import structs

    plain, tagged = split_tagged(fields, version)
    members = [
        structs.Member(
            f.name,
            construct_of(f, version, flexible),
            f.zero(version) if f.default is not ... else ...,
        )
        for f in plain
    ]
    if not flexible:
        return structs.Fields(members)
    known = {
        f.tag: structs.Member(f.name, construct_of(f, version, flexible), _tag_default(f, version))
        for f in tagged
        if f.tag is not None
    }
    return structs.Fields(members, structs.TaggedFields(known))


def _tag_default(each: Field, version: int) -> Any:
    """Return the default of a tagged field; for a mutable default a function that creates it."""
    if each.default is ... and (each.type == "struct" or each.type.startswith("[]")):
        return lambda: each.zero(version)
    return each.zero(version)
