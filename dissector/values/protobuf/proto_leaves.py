"""Where the leaves of a Protobuf message are in its bytes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from dissector.values.protobuf.proto_declarations import ProtoEnum, ProtoField, ProtoMessage
from dissector.values.protobuf.type_pool import TypePool
from dissector.values.protobuf.well_known_types import ANY, FIELD_MASK
from dissector.values.protobuf.wire_format import (
    FIXED_32,
    FIXED_64,
    GROUP,
    SIZED,
    VARINT,
    read_varint,
)
from dissector.values.protobuf.wire_pieces import Piece
from dissector.values.value_leaves import Leaf, LeafKind, Leaves, is_text, unsigned, varint_at
from dissector.values.value_limits import MAX_DEPTH, ValueProblem

_Numbers: TypeAlias = Sequence[int] | range

_SIGN_64 = 1 << 63
_NEGATIVE_32 = range((1 << 64) - (1 << 31), 1 << 64)
_NEGATIVE_64 = range(_SIGN_64, 1 << 64)
_CHOICES: dict[str, tuple[_Numbers, _Numbers]] = {
    "bool": (range(2), range(2)),
    "int32": (range(1 << 31), _NEGATIVE_32),
    "uint32": (range(1 << 32), range(1 << 32)),
    "sint32": (range(1 << 32), range(1 << 32)),
    "int64": (range(1 << 63), _NEGATIVE_64),
    "uint64": (range(1 << 64), range(1 << 64)),
    "sint64": (range(1 << 64), range(1 << 64)),
}
"""Numbers of the types, without and with the highest bit: negative ones stay negative."""

_BIT_FLOATS = ("float", "double")
_FIXED_SIZES = {FIXED_32: 4, FIXED_64: 8}

_TIMES: Mapping[tuple[str, str], tuple[_Numbers, _Numbers]] = {
    ("Timestamp", "seconds"): (range(253_402_300_800), range((1 << 64) - 62_135_596_800, 1 << 64)),
    ("Duration", "seconds"): (
        range(315_576_000_001),
        range((1 << 64) - 315_576_000_000, 1 << 64),
    ),
} | {
    (name, "nanos"): (range(10**9), range((1 << 64) - 10**9 + 1, 1 << 64))
    for name in ("Timestamp", "Duration")
}
"""What readers accept in the fields of types with limits of their own."""


class LeafWalk:
    """
    Collects the leaves of one value.

    Attributes:
        leaves: Those so far.
    """

    def __init__(self, pool: TypePool, data: bytes) -> None:
        self.leaves = Leaves()
        self._pool = pool
        self._data = data

    def message(
        self, message: ProtoMessage | None, found_pieces: Iterable[Piece], depth: int = 0
    ) -> None:
        """
        Collect those of a message by its fields on the wire; None: its type is unknown.

        Raises:
            ValueProblem: It does not fit.
        """
        if depth > MAX_DEPTH:
            raise ValueProblem(f"nested deeper than {MAX_DEPTH} levels")
        if message is not None and message.full_name == FIELD_MASK:
            return  # names of fields
        fields = {} if message is None else self._fields(message)
        for piece in found_pieces:
            scope, field = fields.get(piece.number, ("", None))
            found = None if field is None else self._pool.type_of(field, scope)
            if isinstance(found, ProtoMessage) and piece.wire in (SIZED, GROUP):
                if found.full_name == ANY:
                    self._any(piece, depth)
                else:
                    self.message(found, piece.content(self._data), depth + 1)
            elif field is None and piece.wire == GROUP:
                self.message(None, piece.inner, depth + 1)
            elif field is None or message is None:
                self._content(piece, is_string=self._is_text(piece))
            elif not isinstance(found, ProtoMessage):
                self._scalar(piece, field, found, message)

    def _fields(self, message: ProtoMessage) -> dict[int, tuple[str, ProtoField]]:
        return {field.number: (scope, field) for scope, field in self._pool.fields_of(message)}

    def _any(self, piece: Piece, depth: int) -> None:
        """Collect the leaves of an `Any`, whose type stays."""
        inner: ProtoMessage | None = None
        for each in piece.content(self._data):
            content = self._data[each.start : each.stop]
            if each.number == 1:
                name = content.decode("utf-8", "replace").rpartition("/")[2]
                inner = self._pool.messages.get(name)
            elif inner is not None:
                self.message(inner, each.content(self._data), depth + 1)
            else:
                self._content(each, is_string=False)

    def _is_text(self, piece: Piece) -> bool:
        return piece.wire == SIZED and is_text(self._data[piece.start : piece.stop])

    def _content(self, piece: Piece, *, is_string: bool) -> None:
        """Add a field whose bytes are no numbers of a known type."""
        kind = LeafKind.TEXT if is_string else LeafKind.BYTES
        kind = LeafKind.VARINT if piece.wire == VARINT else kind
        self.leaves.add(Leaf(kind, piece.start, piece.stop))

    def _scalar(
        self, piece: Piece, field: ProtoField, enum: ProtoEnum | None, message: ProtoMessage
    ) -> None:
        name = field.type_name
        if name in ("string", "bytes"):
            self._content(piece, is_string=name == "string")
            return
        both = _choices(name, enum, message, field)
        if piece.wire in _FIXED_SIZES or (piece.wire == SIZED and both is None):
            self._fixed(piece, name)
            return
        if both is None:
            return
        at = piece.start
        while at < piece.stop:
            _, end = read_varint(self._data, at)
            number = varint_at(self._data, Leaf(LeafKind.VARINT, at, end))
            choices = both[number >= _SIGN_64]
            self.leaves.add(Leaf(LeafKind.VARINT, at, end, choices))
            at = end

    def _fixed(self, piece: Piece, name: str) -> None:
        size = _FIXED_SIZES.get(piece.wire) or (8 if name in ("double", *_EIGHT) else 4)
        kind = LeafKind.FLOAT if name in _BIT_FLOATS else LeafKind.BYTES
        for at in range(piece.start, piece.stop, size):
            self.leaves.add(Leaf(kind, at, min(at + size, piece.stop)))


_EIGHT = ("fixed64", "sfixed64")


def _choices(
    name: str, enum: ProtoEnum | None, message: ProtoMessage, field: ProtoField
) -> tuple[_Numbers, _Numbers] | None:
    """Return the numbers of a type of varints, without and with the highest bit."""
    if enum is not None:
        declared = unsigned(enum.names)
        return declared, declared
    package, _, title = message.full_name.rpartition(".")
    limits = _TIMES.get((title, field.name)) if package == "google.protobuf" else None
    return limits or _CHOICES.get(name)
