"""
Readers of messages: their fields, in the types of JSON.

Each field has functions by the keys that it may have on the wire; one reads a value and puts it
into the message. Fields without presence have their default where the wire lacks them.

Source: https://protobuf.dev/programming-guides/json/ (names as declared, and 64-bit numbers as
numbers, which its readers accept as well).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeAlias

from dissector.values.protobuf.ordered_fields import Begin, Put, ordered_reader
from dissector.values.protobuf.proto_declarations import ProtoEnum, ProtoField
from dissector.values.protobuf.wire_format import (
    ENDS_EARLY,
    GROUP,
    GROUP_END,
    RAW,
    SCALARS,
    SIZED,
    VARINT,
    ProtoRoom,
    Scalar,
    base64_of,
    read_span,
    read_varint,
    signed_32,
    skip_unknown,
    text_of,
)
from dissector.values.value_limits import MAX_DEPTH, ValueProblem

Finish: TypeAlias = Callable[[dict[str, Any], ProtoRoom], Any]
"""Returns the value of a message that JSON writes in another form."""

UNSET: Any = object()
_NO_ITEMS: list[Any] = []
_NO_ENTRIES: dict[str, Any] = {}
_PER_FIELD = 8


class MessageReader:
    """
    Reads one type of messages.

    Attributes:
        puts: By the key on the wire.
        fields: By the key on the wire.
        inner: Readers of the messages, or of the entries of a map, that a field has, by its name.
        maps: Names of the fields that are maps.
        enums: The enum that a field has, by its name.
        output: What it makes of output, without its fields' contents.
        start: The fields of an empty message, in order; `UNSET` for those with presence.
        spans: Fields with messages, which are read when all their pieces are known.
        places: Keys that oneofs have while a message is read.
        finish: Its other form, if it has one.
    """

    __slots__ = (
        *("_begin", "enums", "fields", "finish", "full_name", "has_unset", "inner", "maps"),
        *("output", "places", "puts", "spans", "start"),
    )

    def __init__(self, full_name: str, finish: Finish | None = None) -> None:
        """Start; `add` adds the fields."""
        self.full_name = full_name
        self.puts: dict[int, Put] = {}
        self.fields: dict[int, ProtoField] = {}
        self.inner: dict[str, Callable[[], MessageReader]] = {}
        self.maps: set[str] = set()
        self.enums: dict[str, ProtoEnum] = {}
        self.start: dict[str, Any] = {}
        self.spans: list[tuple[str, Callable[[], MessageReader]]] = []
        self.finish = finish
        self.has_unset = False
        self.places: set[str] = set()
        self.output = 2
        self._begin: Begin | None = None

    def add(self, field: ProtoField, default: Any, puts: Iterable[tuple[int, Put]]) -> None:
        """Add a field; without presence it has a default, and so have lists and maps."""
        has_presence = field.has_presence and not field.is_repeated
        self.start[field.name] = UNSET if has_presence else default
        self.has_unset |= has_presence
        self.output += len(field.name) + _PER_FIELD
        if field.oneof:
            self.places.add(_place_of(field.oneof))
            puts = [(key, in_oneof(put, field.name, field.oneof)) for key, put in puts]
        for key, put in puts:
            self.puts[key], self.fields[key] = put, field

    def add_messages(
        self,
        field: ProtoField,
        puts: Iterable[tuple[int, Put]],
        reader: Callable[[], MessageReader],
        *,
        in_map: bool,
    ) -> None:
        """Add a field with messages, which has presence but for the value of a map."""
        if not field.is_repeated and not field.is_group:
            self.spans.append((field.name, reader))
        self.inner[field.name] = reader
        self.add(replace(field, has_presence=not in_map), _NO_ITEMS, puts)

    def add_map(
        self,
        field: ProtoField,
        puts: Iterable[tuple[int, Put]],
        entry: Callable[[], MessageReader],
    ) -> None:
        """Add a map, whose entries are messages with a key and a value."""
        self.inner[field.name] = entry
        self.maps.add(field.name)
        self.add(field, _NO_ENTRIES, puts)

    def read(self, data: bytes, at: int, end: int, room: ProtoRoom) -> Any:
        """
        Return a message.

        Raises:
            ValueProblem: It does not fit.
        """
        value, at = self.read_to(data, at, end, room, -1)
        if at != end:
            raise ValueProblem(ENDS_EARLY)
        return value

    def read_to(
        self, data: bytes, at: int, end: int, room: ProtoRoom, last: int
    ) -> tuple[Any, int]:
        """Return a message up to its end, or up to the key that ends its group."""
        # `enter`, `take` and `leave` without their calls: most messages are small.
        room.depth += 1
        room.left -= self.output
        if room.left < 0 or room.depth > MAX_DEPTH:
            room.check()
        values = self.start.copy()
        if self._begin is None:
            self._begin = ordered_reader(self.puts, self.fields, dict(self.spans))
        at = self._begin(values, data, at, end, room)
        puts = self.puts
        while at < end:
            key = data[at]
            at += 1
            if key >= 0x80:
                key, at = read_varint(data, at - 1)
            put = puts.get(key)
            if put is not None:
                at = put(values, data, at, end, room)
            elif key == last:
                last = -1
                break
            else:
                at = skip_unknown(values, key, data, at, end, room)
        if last >= 0:
            raise ValueProblem(ENDS_EARLY)
        for name, reader in self.spans:
            spans = values[name]
            if spans is not UNSET:
                values[name] = _merged(reader(), data, spans, room)
        for place in self.places:
            values.pop(place, None)
        if self.has_unset and UNSET in values.values():
            values = {name: each for name, each in values.items() if each is not UNSET}
        room.depth -= 1
        return (values if self.finish is None else self.finish(values, room)), at


def _merged(
    reader: MessageReader, data: bytes, spans: list[tuple[int, int]], room: ProtoRoom
) -> Any:
    """Return the message that is in one piece, or in several that count together."""
    if len(spans) == 1:
        return reader.read(data, *spans[0], room)
    whole = b"".join(data[at:stop] for at, stop in spans)
    return reader.read(whole, 0, len(whole), room)


def read_value(reader: MessageReader, data: bytes, at: int, room: ProtoRoom) -> Any:
    """
    Return the message that begins at a byte and ends with the data.

    Raises:
        ValueProblem: It does not fit.
    """
    try:
        return reader.read(data, at, len(data), room)
    except (IndexError, struct.error):
        raise ValueProblem(ENDS_EARLY) from None
    except RecursionError:
        raise ValueProblem("nested too deep") from None


def scalar_puts(field: ProtoField, scalar: Scalar) -> list[tuple[int, Put]]:
    """Return the functions of a field of numbers; lists may be packed."""
    one = _varint_reader(scalar) if scalar.wire == VARINT else _fixed_reader(scalar)
    return _number_puts(field, scalar.wire, one)


def enum_puts(field: ProtoField, enum: ProtoEnum) -> list[tuple[int, Put]]:
    """Return the functions of a field with an enum: names, or unknown numbers."""
    names = enum.names

    def one(data: bytes, at: int, room: ProtoRoom) -> tuple[Any, int]:
        number, at = read_varint(data, at)
        name = names.get(signed_32(number))
        if name is None:
            return signed_32(number), at
        room.take(len(name))
        return name, at

    return _number_puts(field, VARINT, one)


_One: TypeAlias = Callable[[bytes, int, ProtoRoom], tuple[Any, int]]


def _varint_reader(scalar: Scalar) -> _One:
    convert = scalar.convert

    def one(data: bytes, at: int, room: ProtoRoom) -> tuple[Any, int]:
        number = data[at]
        at += 1
        if number >= 0x80:
            number, at = read_varint(data, at - 1)
        return (number if convert is None else convert(number)), at

    return one


def _fixed_reader(scalar: Scalar) -> _One:
    unpack, convert, size = scalar.unpack, scalar.convert, scalar.size
    assert unpack is not None

    def one(data: bytes, at: int, room: ProtoRoom) -> tuple[Any, int]:
        number = unpack(data, at)[0]
        return (number if convert is None else convert(number)), at + size

    return one


def _number_puts(field: ProtoField, wire: int, one: _One) -> list[tuple[int, Put]]:
    name, key = field.name, field.number << 3

    def put(values: dict[str, Any], data: bytes, at: int, end: int, room: ProtoRoom) -> int:
        values[name], at = one(data, at, room)
        return at

    def put_item(values: dict[str, Any], data: bytes, at: int, end: int, room: ProtoRoom) -> int:
        item, at = one(data, at, room)
        _items(values, name).append(item)
        return at

    def put_packed(values: dict[str, Any], data: bytes, at: int, end: int, room: ProtoRoom) -> int:
        at, stop = read_span(data, at, end)
        items = _items(values, name)
        while at < stop:
            item, at = one(data, at, room)
            items.append(item)
        if at != stop:
            raise ValueProblem(f"a number across the end of its list at byte {stop:,}")
        return at

    if field.is_repeated:
        return [(key | wire, put_item), (key | SIZED, put_packed)]
    return [(key | wire, put)]


def _items(values: dict[str, Any], name: str) -> list[Any]:
    items: list[Any] = values[name]
    if items is _NO_ITEMS or items is UNSET:
        items = values[name] = []
    return items


def content_puts(field: ProtoField, convert: Callable[[bytes], Any]) -> list[tuple[int, Put]]:
    """Return the function of a field with texts or bytes."""
    name, is_repeated = field.name, field.is_repeated

    def put(values: dict[str, Any], data: bytes, at: int, end: int, room: ProtoRoom) -> int:
        at, stop = read_span(data, at, end)
        if is_repeated:
            _items(values, name).append(convert(data[at:stop]))
        else:
            values[name] = convert(data[at:stop])
        return stop

    return [(field.number << 3 | SIZED, put)]


CONTENTS: dict[str, tuple[Callable[[bytes], Any], Any]] = {
    "string": (text_of, ""),
    "bytes": (base64_of, ""),
    RAW: (bytes, b""),
}
"""Converters and defaults of types with a size."""


def message_puts(field: ProtoField, reader: Callable[[], MessageReader]) -> list[tuple[int, Put]]:
    """Return the functions of a field with messages."""
    name, key = field.name, field.number << 3
    last = key | GROUP_END

    def put_span(values: dict[str, Any], data: bytes, at: int, end: int, room: ProtoRoom) -> int:
        at, stop = read_span(data, at, end)
        _items(values, name).append((at, stop))
        return stop

    def put_item(values: dict[str, Any], data: bytes, at: int, end: int, room: ProtoRoom) -> int:
        at, stop = read_span(data, at, end)
        _items(values, name).append(reader().read(data, at, stop, room))
        return stop

    def put_group(values: dict[str, Any], data: bytes, at: int, end: int, room: ProtoRoom) -> int:
        value, at = reader().read_to(data, at, end, room, last)
        if field.is_repeated:
            _items(values, name).append(value)
        else:
            values[name] = value
        return at

    if field.is_group:
        return [(key | GROUP, put_group)]
    return [(key | SIZED, put_item if field.is_repeated else put_span)]


def map_puts(field: ProtoField, reader: Callable[[], MessageReader]) -> list[tuple[int, Put]]:
    """Return the function of a map, whose entries are messages with a key and a value."""
    name = field.name

    def put(values: dict[str, Any], data: bytes, at: int, end: int, room: ProtoRoom) -> int:
        at, stop = read_span(data, at, end)
        entry = reader().read(data, at, stop, room)
        if values[name] is _NO_ENTRIES:
            values[name] = {}
        values[name][map_key(entry["key"])] = entry["value"]
        return stop

    return [(field.number << 3 | SIZED, put)]


def map_key(key: Any) -> str:
    """Return a key of a map as JSON has it."""
    if isinstance(key, bool):
        return "true" if key else "false"
    return str(key)


def in_oneof(put: Put, name: str, oneof: str) -> Put:
    """Return the function of a field that takes the place of another of its oneof."""
    place = _place_of(oneof)

    def put_alone(values: dict[str, Any], data: bytes, at: int, end: int, room: ProtoRoom) -> int:
        previous = values.get(place, name)
        if previous != name:
            values[previous] = UNSET
        values[place] = name
        return put(values, data, at, end, room)

    return put_alone


def _place_of(oneof: str) -> str:
    """Return where a message being read has the name of the field that a oneof has."""
    return f"oneof {oneof}"


def default_of(field: ProtoField, enum: ProtoEnum | None) -> Any:
    """Return what a field without presence is if the wire lacks it."""
    if field.is_repeated:
        return _NO_ITEMS
    if enum is not None:
        return enum.default
    if field.type_name in CONTENTS:
        return CONTENTS[field.type_name][1]
    return SCALARS[field.type_name].default
