"""Where the parts of a decoded value are in its bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

MAX_PARTS = 100_000
"""A value of more parts is shown without their places."""


class LocatedValue(NamedTuple):
    """
    A value, or a part of one, with its bytes [start, end).

    Attributes:
        value: In the types of JSON.
        start: Where it begins.
        end: Where it ends.
        members: Those of an object by name, or the items of an array as `[0]`.
    """

    value: Any
    start: int
    end: int
    members: Sequence[tuple[str, LocatedValue]] = ()

    def member(self, name: str) -> LocatedValue | None:
        """Return a member of an object."""
        return next((each for known, each in self.members if known == name), None)


def without_places(value: Any) -> Sequence[tuple[str, Any]]:
    """Return the members of a value whose bytes are unknown, by the same names."""
    if isinstance(value, dict):
        return list(value.items())
    return [(item_name(index), each) for index, each in enumerate(value)]


def item_name(index: int) -> str:
    """Return the name of an item of an array."""
    return f"[{index}]"
