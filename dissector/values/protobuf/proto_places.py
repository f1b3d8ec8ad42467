"""
Where the parts of a Protobuf message are in its bytes.

A part is a field with its key; items of a packed list have their own bytes, and what the wire
lacks has none. Of a field that is there more than once, the place is that of the value that counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeAlias

from dissector.values.located_value import MAX_PARTS, LocatedValue, item_name
from dissector.values.protobuf.message_readers import CONTENTS, MessageReader, map_key
from dissector.values.protobuf.proto_declarations import ProtoMessage
from dissector.values.protobuf.type_pool import TypePool
from dissector.values.protobuf.well_known_types import ANY, CONTENT_FIELDS
from dissector.values.protobuf.wire_format import SCALARS, SIZED, ProtoRoom, base64_of, read_varint
from dissector.values.protobuf.wire_pieces import Piece, pieces
from dissector.values.value_limits import ValueProblem

_Members: TypeAlias = Sequence[tuple[str, LocatedValue]]


class PlaceWalk:
    """Finds the parts of one value, which was decoded before."""

    def __init__(self, pool: TypePool, data: bytes) -> None:
        self._pool = pool
        self._data = data
        self._count = 0

    def located(self, message: ProtoMessage, value: Any, at: int) -> LocatedValue | None:
        """Return the value that begins at a byte with its parts; None if these are unknown."""
        end = len(self._data)
        try:
            found = pieces(self._data, at, end)
            members = self._inside(self._pool.reader_of(message), value, found, at)
        except (ValueProblem, IndexError, KeyError, RecursionError):
            return None
        return LocatedValue(value, at, end, members)

    def _inside(
        self, reader: MessageReader | None, value: Any, found: Iterable[Piece], at: int
    ) -> _Members:
        """Return the parts of a message, which may have a JSON form of its own."""
        if reader is None or reader.finish is None:
            return self._fields(reader, value, found, at) if isinstance(value, dict) else ()
        if reader.full_name == ANY:
            return self._any(reader, value, found, at)
        name = CONTENT_FIELDS.get((reader.full_name, type(value)))
        return self._fields(reader, {name: value}, found, at)[0][1].members if name else ()

    def _fields(
        self,
        reader: MessageReader | None,
        values: Mapping[str, Any],
        found: Iterable[Piece],
        at: int,
    ) -> _Members:
        """Return the parts of a message that has the form of its fields."""
        by_name = self._by_name(reader, found)
        return [
            (name, self._field(reader, name, value, by_name.get(name, ()), at))
            for name, value in values.items()
        ]

    def _by_name(
        self, reader: MessageReader | None, found: Iterable[Piece]
    ) -> dict[str, list[Piece]]:
        """Return pieces by the names of their fields, without those that a oneof replaced."""
        by_name: dict[str, list[Piece]] = {}
        chosen: dict[str, str] = {}
        for piece in found:
            self._count_part()
            field = None if reader is None else reader.fields.get(piece.wire_key)
            name = str(piece.number) if field is None else field.name
            if field is not None and field.oneof:
                previous = chosen.get(field.oneof, name)
                if previous != name:
                    by_name.pop(previous, None)
                chosen[field.oneof] = name
            by_name.setdefault(name, []).append(piece)
        return by_name

    def _count_part(self) -> None:
        self._count += 1
        if self._count > MAX_PARTS:
            raise ValueProblem("too many parts")

    def _field(
        self,
        reader: MessageReader | None,
        name: str,
        value: Any,
        found: Sequence[Piece],
        at: int,
    ) -> LocatedValue:
        if not found:
            return LocatedValue(value, at, at)
        last, inner = found[-1], self._inner(reader, name)
        if reader is not None and inner is not None and name in reader.maps:
            members = self._entries(inner, value, found)
        elif isinstance(value, list) and self._is_list(reader, last):
            members = self._items(reader, inner, value, found)
        elif inner is not None and last.wire == SIZED:  # its pieces count together
            content = chain.from_iterable(each.content(self._data) for each in found)
            members = self._inside(inner, value, content, found[0].start)
        else:
            members = self._inside(inner, value, last.inner, last.start)
            return LocatedValue(value, last.key, last.end, members)
        return LocatedValue(value, found[0].key, last.end, members)

    def _inner(self, reader: MessageReader | None, name: str) -> MessageReader | None:
        """Return the reader of the messages in a field."""
        inner = None if reader is None else reader.inner.get(name)
        return None if inner is None else inner()

    def _is_list(self, reader: MessageReader | None, piece: Piece) -> bool:
        """Return whether a field is repeated, as those that nobody declares may be."""
        field = None if reader is None else reader.fields.get(piece.wire_key)
        return field is None or field.is_repeated

    def _items(
        self,
        reader: MessageReader | None,
        inner: MessageReader | None,
        values: Sequence[Any],
        found: Sequence[Piece],
    ) -> _Members:
        """Return the items of a list."""
        items: list[tuple[str, LocatedValue]] = []
        for piece in found:
            content = piece.inner if inner is None else piece.content(self._data)
            for start, end in self._spans(reader, inner, piece):
                value = values[len(items)]
                within = self._inside(inner, value, content, piece.start)
                items.append((item_name(len(items)), LocatedValue(value, start, end, within)))
        return items

    def _spans(
        self, reader: MessageReader | None, inner: MessageReader | None, piece: Piece
    ) -> Iterator[tuple[int, int]]:
        """Yield where the items of a piece are: one, or those of a packed list."""
        field = None if reader is None else reader.fields.get(piece.wire_key)
        is_packed = field is not None and inner is None and field.type_name not in CONTENTS
        if field is None or not is_packed or piece.wire != SIZED:
            yield piece.key, piece.end
            return
        scalar = SCALARS.get(field.type_name)
        size = 0 if scalar is None else scalar.size  # an enum has no size, as varints
        at = piece.start
        while at < piece.stop:
            self._count_part()
            end = at + size if size else read_varint(self._data, at)[1]
            yield at, end
            at = end

    def _entries(
        self, entry: MessageReader, values: Mapping[str, Any], found: Sequence[Piece]
    ) -> _Members:
        """Return the entries of a map by their keys; of those with one key the last counts."""
        by_key: dict[str, tuple[Piece, Sequence[Piece]]] = {}
        for piece in found:
            content = list(piece.content(self._data))
            by_key[self._key(entry, content)] = piece, content
        members = []
        for name, value in values.items():
            piece, inside = by_key[name]
            within = self._fields(entry, {"value": value}, inside, piece.start)[0][1].members
            members.append((name, LocatedValue(value, piece.key, piece.end, within)))
        return members

    def _key(self, entry: MessageReader, content: Sequence[Piece]) -> str:
        values = entry.start.copy()
        for piece in content:
            field = entry.fields.get(piece.wire_key)
            if field is not None and field.name == "key":
                behind_key = read_varint(self._data, piece.key)[1]
                put = entry.puts[piece.wire_key]
                put(values, self._data, behind_key, piece.end, ProtoRoom(len(self._data)))
        return map_key(values["key"])

    def _any(
        self, reader: MessageReader, value: Mapping[str, Any], found: Iterable[Piece], at: int
    ) -> _Members:
        """Return the parts of an `Any`: its type, and its content or the parts of that."""
        if not value:
            return ()
        by_name = self._by_name(reader, found)
        url, rest = value["@type"], {each: value[each] for each in value if each != "@type"}
        place = self._field(reader, "type_url", url, by_name.get("type_url", ()), at)
        members = [("@type", place)]
        for piece in by_name.get("value", [])[-1:]:
            content = self._data[piece.start : piece.stop]
            message = self._pool.messages.get(url.rpartition("/")[2])
            if message is None or rest == {"value": base64_of(content)}:  # it did not decode
                return [*members, ("value", LocatedValue(rest["value"], piece.key, piece.end))]
            inner, inside = self._pool.reader_of(message), piece.content(self._data)
            if inner.finish is None:
                return [*members, *self._fields(inner, rest, inside, piece.start)]
            within = self._inside(inner, rest["value"], inside, piece.start)
            return [*members, ("value", LocatedValue(rest["value"], piece.key, piece.end, within))]
        return [*members, *((each, LocatedValue(rest[each], at, at)) for each in rest)]
