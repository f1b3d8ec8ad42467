"""Limits of decoding: a schema from a capture is hostile, and so are its values."""

from __future__ import annotations

OUTPUT_PER_BYTE = 64
"""Bytes of output for each byte of a key or value; a few short bytes may have `MIN_OUTPUT`."""

MIN_OUTPUT = 1 << 14

_SHORT = MIN_OUTPUT // OUTPUT_PER_BYTE

MAX_OUTPUT = 16 << 20

MAX_DEPTH = 100
"""Levels of types that contain themselves."""

MAX_SCHEMA_BYTES = 1 << 20

MAX_SCHEMA_DEPTH = 64
"""Levels of one type inside another, as written in a schema."""


class ValueProblem(Exception):
    """A key or a value does not decode; the text states the reason. It stays in this room."""


class SchemaProblem(ValueProblem):
    """A schema can't be used; the text states the reason."""


class Room:
    """
    What is left for one key or value.

    Attributes:
        left: Bytes of output.
        depth: Levels of recursive types that are open.
    """

    __slots__ = ("depth", "left")

    def __init__(self, size: int) -> None:
        """Start for a value of some bytes."""
        self.left = MIN_OUTPUT if size <= _SHORT else output_limit(size)
        self.depth = 0

    def take(self, size: int) -> None:
        """
        Use some of the output.

        Raises:
            ValueProblem: There is not so much.
        """
        self.left -= size
        if self.left < 0:
            self.check()

    def enter(self) -> None:
        """
        Open a level of a recursive type.

        Raises:
            ValueProblem: It is too deep.
        """
        self.depth += 1
        if self.depth > MAX_DEPTH:
            self.check()

    def check(self) -> None:
        """
        Check the output and the levels so far.

        Raises:
            ValueProblem: They are too many.
        """
        if self.depth > MAX_DEPTH:
            raise ValueProblem(f"nested deeper than {MAX_DEPTH} levels")
        if self.left < 0:
            raise ValueProblem("more output than its size allows")

    def leave(self) -> None:
        """Close a level."""
        self.depth -= 1


def output_limit(size: int) -> int:
    """Return the most bytes of output for a value of some bytes."""
    if size <= _SHORT:
        return MIN_OUTPUT
    return min(MAX_OUTPUT, OUTPUT_PER_BYTE * size)
