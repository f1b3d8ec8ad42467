"""
Avro schemas: from JSON to a reader of values.

Source: https://avro.apache.org/docs/1.12.0/specification/#schema-declaration
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from functools import cached_property, partial
from typing import Any

from dissector.values.avro import avro_types as types
from dissector.values.avro.avro_leaves import LOGICAL_CHOICES, PLAIN_CHOICES, LeafRecorder
from dissector.values.avro.avro_places import PlaceRecorder
from dissector.values.avro.avro_shapes import (
    Blocks,
    Converted,
    Fixed,
    Record,
    Recursive,
    Shape,
    Symbols,
    Union,
)
from dissector.values.avro.avro_types import Read
from dissector.values.avro.record_code import MAX_FIELDS, compiled_record
from dissector.values.located_value import LocatedValue
from dissector.values.value_leaves import Leaves
from dissector.values.value_limits import (
    MAX_SCHEMA_BYTES,
    MAX_SCHEMA_DEPTH,
    Room,
    SchemaProblem,
    ValueProblem,
)

_NAMED = ("record", "error", "enum", "fixed")

MAX_FIXED_BYTES = 16 << 20


class AvroSchema:
    """
    A schema of values.

    Attributes:
        declared: The schema as JSON.
        read: The reader of values.
        shapes: What readers read, for those that are no primitive ones.
    """

    def __init__(self, text: str, references: Iterable[str] = ()) -> None:
        """
        Build the reader of a schema.

        Args:
            text: The schema in JSON.
            references: Schemas whose named types it uses.

        Raises:
            SchemaProblem: It is not a schema.
        """
        self._references = [schema_json(each) for each in references]
        self.declared = schema_json(text)
        builder = _Builder()
        self.read = self._reader(builder)
        self.shapes = builder.shapes

    def value(self, data: bytes, at: int = 0) -> Any:
        """
        Return a value in the types of JSON.

        Args:
            data: The value, to its end.
            at: Where it begins.

        Raises:
            ValueProblem: It does not fit.
        """
        try:
            value, end = self.read(data, at, Room(len(data)))
        except READING_ERRORS as error:
            raise _problem_of(error) from None
        if end == len(data):
            return value
        if end > len(data):
            raise ValueProblem(types.ENDS_EARLY)
        raise ValueProblem(f"{len(data) - end:,} bytes behind its end at byte {end:,}")

    def located(self, data: bytes, at: int) -> LocatedValue | None:
        """Return a value that decodes with the places of its parts; None if they are too many."""
        recorder, read = self._observed
        recorder.begin()
        try:
            read(data, at, Room(len(data)))
        except (ValueProblem, RecursionError):  # observed readers nest deeper
            return None
        return recorder.found()

    def leaves(self, data: bytes, at: int) -> Leaves | None:
        """Return the leaves of a value that decodes; None if they are too many."""
        recorder, read = self._recorded
        recorder.leaves = Leaves()
        try:
            read(data, at, Room(len(data)))
        except (ValueProblem, RecursionError):
            return None
        return recorder.leaves

    @cached_property
    def _observed(self) -> tuple[PlaceRecorder, Read]:
        recorder = PlaceRecorder()
        return recorder, self._reader(_ObservedBuilder(recorder))

    @cached_property
    def _recorded(self) -> tuple[LeafRecorder, Read]:
        recorder = LeafRecorder()
        return recorder, self._reader(_LeafBuilder(recorder))

    def _reader(self, builder: _Builder) -> Read:
        for each in self._references:
            builder.read(each, "", 0)
        return builder.read(self.declared, "", 0)

    def value_at(self, data: bytes, at: int, room: Room) -> tuple[Any, int]:
        """
        Return a value and the position behind it.

        Raises:
            ValueProblem: It does not fit.
        """
        try:
            return self.read(data, at, room)
        except READING_ERRORS as error:
            raise _problem_of(error) from None


READING_ERRORS = (IndexError, struct.error, UnicodeDecodeError, RecursionError)
"""What readers raise, besides `ValueProblem`, where a value does not fit."""


def _problem_of(error: Exception) -> ValueProblem:
    """Return what an error of a reader means."""
    if isinstance(error, UnicodeDecodeError):
        return ValueProblem("a text in it is not UTF-8")
    if isinstance(error, RecursionError):
        return ValueProblem("nested too deep")
    return ValueProblem(types.ENDS_EARLY)


def schema_json(text: str) -> Any:
    """
    Return a schema as JSON; a bare word is a primitive type.

    Raises:
        SchemaProblem: It is too large, or not JSON.
    """
    if len(text) > MAX_SCHEMA_BYTES:
        raise SchemaProblem(f"the schema has more than {MAX_SCHEMA_BYTES:,} bytes")
    if text in types.PRIMITIVES:
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise SchemaProblem(f"the schema is not JSON ({error})") from None
    except RecursionError:
        raise SchemaProblem("the schema nests too deep") from None


class _Builder:
    """
    Builds readers; knows the named types so far.

    Attributes:
        shapes: What readers read, for those that are no primitive ones.
    """

    def __init__(self, to_compile: int = MAX_FIELDS) -> None:
        self._map_key: Read = types.read_string
        self._to_compile = to_compile
        self.shapes: dict[Read, Shape] = {}
        self._named: dict[str, Read] = {}
        self._open: set[str] = set()

    def read(self, schema: Any, space: str, depth: int) -> Read:
        """Return the reader of a schema; `space` is the namespace around it."""
        if depth > MAX_SCHEMA_DEPTH:
            raise SchemaProblem("the schema nests too deep")
        match schema:
            case str():
                return self._by_name(schema, space)
            case list():
                branches = [self.read(each, space, depth + 1) for each in schema]
                return self._shaped(types.union_reader(branches), Union(branches))
            case {"type": str(kind)} if kind in _NAMED:
                return self._define(schema, kind, space, depth)
            case {"type": "array", "items": items}:
                item = self.read(items, space, depth + 1)
                return self._shaped(types.array_reader(item), Blocks((item,)))
            case {"type": "map", "values": values}:
                parts = self._map_key, self.read(values, space, depth + 1)
                return self._shaped(types.map_reader(*parts), Blocks(parts))
            case {"type": str(kind)}:
                return self._logical(self._by_name(kind, space), kind, schema)
            case {"type": inner}:
                return self.read(inner, space, depth + 1)
        raise SchemaProblem(f"not a type: {json.dumps(schema)[:60]}")

    def _by_name(self, name: str, space: str) -> Read:
        if name in types.PRIMITIVES:
            return types.PRIMITIVES[name]
        for full in (full_name(name, space), name):
            if full in self._open:
                target = partial(self._named.__getitem__, full)
                return self._shaped(types.recursive_reader(target), Recursive(target))
            if full in self._named:
                return self._named[full]
        raise SchemaProblem(f"unknown type {name[:60]!r}")

    def _define(self, schema: dict[str, Any], kind: str, space: str, depth: int) -> Read:
        name, space = declared_name(schema, space)
        if name in self._open:
            raise SchemaProblem(f"{name[:60]!r} is declared inside itself")
        match kind, schema:
            case "enum", {"symbols": [*symbols]} if all(isinstance(each, str) for each in symbols):
                longest = max(map(len, symbols), default=0)
                read = types.enum_reader(tuple(symbols))
                self._shaped(read, Symbols(symbols, longest))
            case "fixed", {"size": int(size)} if 0 <= size <= MAX_FIXED_BYTES:
                plain = self._shaped(types.fixed_reader(size), Fixed(size))
                read = self._logical(plain, kind, schema)
            case (("record" | "error"), {"fields": [*fields]}):
                self._open.add(name)
                read = self._record([self._field(each, space, depth + 1) for each in fields])
                self._open.remove(name)
            case _:
                raise SchemaProblem(f"the {kind} {name[:60]!r} is not declared as one")
        self._named[name] = read
        return read

    def _record(self, fields: list[tuple[str, Read]]) -> Read:
        self._to_compile -= len(fields)
        is_long = self._to_compile < 0
        read = types.record_reader(fields) if is_long else compiled_record(fields)
        return self._shaped(read, Record(fields, types.record_output(fields)))

    def _logical(self, read: Read, kind: str, schema: dict[str, Any]) -> Read:
        found = types.logical_reader(read, kind, schema)
        if found is read:
            return read
        scale = schema.get("scale", 0)
        return self._shaped(found, Converted(read, schema["logicalType"], scale))

    def _shaped(self, read: Read, shape: Shape) -> Read:
        self.shapes[read] = shape
        return read

    def _field(self, field: Any, space: str, depth: int) -> tuple[str, Read]:
        match field:
            case {"name": str(name), "type": inner}:
                return name, self.read(inner, space, depth)
        raise SchemaProblem(f"not a field: {json.dumps(field)[:60]}")


class _ObservedBuilder(_Builder):
    """Builds readers that are observed."""

    def __init__(self, recorder: PlaceRecorder) -> None:
        super().__init__(to_compile=0)
        self._recorder = recorder

    def read(self, schema: Any, space: str, depth: int) -> Read:
        """Return the reader of a schema; `space` is the namespace around it."""
        return self._recorder.observed(super().read(schema, space, depth))


class _LeafBuilder(_Builder):
    """Builds readers whose leaves are recorded."""

    def __init__(self, recorder: LeafRecorder) -> None:
        super().__init__(to_compile=0)
        self._recorder = recorder
        self._map_key = recorder.recorded(self._map_key, "string")

    def read(self, schema: Any, space: str, depth: int) -> Read:
        """Return the reader of a schema; logical types have limits of their own."""
        match schema:
            case {"type": str(kind), "logicalType": str(logical)} if choices := LOGICAL_CHOICES.get(
                (kind, logical)
            ):
                read = types.logical_reader(types.PRIMITIVES[kind], kind, schema)
                return self._recorder.recorded(read, kind, choices)
        return super().read(schema, space, depth)

    def _by_name(self, name: str, space: str) -> Read:
        read = super()._by_name(name, space)
        if name not in types.PRIMITIVES:
            return read
        return self._recorder.recorded(read, name, PLAIN_CHOICES.get(name, range(0)))

    def _define(self, schema: dict[str, Any], kind: str, space: str, depth: int) -> Read:
        read = super()._define(schema, kind, space, depth)
        if kind in ("enum", "fixed"):
            choices = range(0, 2 * len(schema.get("symbols", ())), 2)
            read = self._recorder.recorded(read, kind, choices)
            self._named[declared_name(schema, space)[0]] = read
        return read


def full_name(name: str, space: str) -> str:
    """Return a name with its namespace."""
    return name if "." in name or not space else f"{space}.{name}"


def declared_name(schema: dict[str, Any], space: str) -> tuple[str, str]:
    """
    Return the full name of a named type, and the namespace inside it.

    Raises:
        SchemaProblem: It has no name.
    """
    name, own = schema.get("name"), schema.get("namespace", space)
    if not isinstance(name, str) or not isinstance(own, str):
        raise SchemaProblem("a named type has no name")
    full = full_name(name, own)
    return full, full.rpartition(".")[0]
