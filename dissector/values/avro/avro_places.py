"""Where the parts of an Avro value are in its bytes: the readers of its types, observed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dissector.values.avro.avro_types import Read
from dissector.values.located_value import MAX_PARTS, LocatedValue, item_name
from dissector.values.value_limits import Room, ValueProblem


class PlaceRecorder:
    """Records what readers read: each reader adds its value behind the parts of the value."""

    def __init__(self) -> None:
        self._parts: list[LocatedValue] = []
        self._count = 0

    def observed(self, read: Read) -> Read:
        """Return a reader that does the same and is recorded."""

        def read_observed(data: bytes, at: int, room: Room) -> tuple[Any, int]:
            around, self._parts = self._parts, []
            value, end = read(data, at, room)
            self._count += 1
            if self._count > MAX_PARTS:
                raise ValueProblem("too many parts")
            around.append(LocatedValue(value, at, end, _members(value, self._parts)))
            self._parts = around
            return value, end

        return read_observed

    def begin(self) -> None:
        """Forget what was read."""
        self._parts, self._count = [], 0

    def found(self) -> LocatedValue:
        """Return what was read last."""
        return self._parts[-1]


def _members(value: Any, parts: Sequence[LocatedValue]) -> Sequence[tuple[str, LocatedValue]]:
    """Return the parts by their names; a union has those of its branch."""
    if len(parts) == 1 and parts[0].value is value:
        return parts[0].members
    if isinstance(value, dict) and len(value) == len(parts):
        return list(zip(value, parts, strict=True))
    if isinstance(value, list):
        return [(item_name(index), each) for index, each in enumerate(parts)]
    return ()
