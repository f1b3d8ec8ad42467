"""Where the leaves of an Avro value are in its bytes: the readers of its types, recorded."""

from __future__ import annotations

from typing import Any

from dissector.values.avro.avro_types import Read, read_long
from dissector.values.value_leaves import Leaf, LeafKind, Leaves
from dissector.values.value_limits import Room

_SIZED = ("string", "bytes")
_KINDS = {
    "int": LeafKind.VARINT,
    "long": LeafKind.VARINT,
    "enum": LeafKind.VARINT,
    "float": LeafKind.FLOAT,
    "double": LeafKind.FLOAT,
    "fixed": LeafKind.BYTES,
    "string": LeafKind.TEXT,
    "bytes": LeafKind.BYTES,
}

PLAIN_CHOICES = {"int": range(1 << 32), "long": range(1 << 64)}
"""The numbers of the types."""

_SECONDS = 62_135_596_800
"""From year 1 to 1970: readers have dates so far, in both directions."""

LOGICAL_CHOICES = {
    ("int", "date"): range(2 * _SECONDS // 86_400),
    ("int", "time-millis"): range(0, 2 * 86_400 * 10**3, 2),
    ("long", "time-micros"): range(0, 2 * 86_400 * 10**6, 2),
} | {
    ("long", f"{local}timestamp-{unit}"): range(min(2 * _SECONDS * scale, 1 << 64))
    for local in ("", "local-")
    for unit, scale in (("millis", 10**3), ("micros", 10**6), ("nanos", 10**9))
}
"""The numbers of logical types."""


class LeafRecorder:
    """
    Records the leaves that readers read.

    Attributes:
        leaves: Those so far.
    """

    def __init__(self) -> None:
        self.leaves = Leaves()

    def recorded(self, read: Read, kind: str, choices: range = range(1 << 64)) -> Read:
        """
        Return a reader that does the same and is recorded.

        Args:
            read: The reader.
            kind: Avro's type; of `null` and `boolean` nothing is recorded.
            choices: Of numbers, those that the type allows, as on the wire.
        """
        leaf_kind, is_sized = _KINDS.get(kind), kind in _SIZED
        if leaf_kind is None:
            return read

        def read_recorded(data: bytes, at: int, room: Room) -> tuple[Any, int]:
            value, end = read(data, at, room)
            start = read_long(data, at, room)[1] if is_sized else at
            self.leaves.add(Leaf(leaf_kind, start, end, choices))
            return value, end

        return read_recorded
