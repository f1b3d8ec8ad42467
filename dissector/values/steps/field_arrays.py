"""The arrays of kernels that find one field of many values."""

from __future__ import annotations

from typing import NamedTuple

from dissector.kernel.arrays import I64
from dissector.kernel.named_rows import NamedRow


class Form:
    """What a kernel found of a field."""

    # Another schema, or another message of it; left to the decoder; no such field, or no value.
    OTHER, REFUSED, ABSENT = 0, 1, 2
    # A null; a boolean; an integer; the bits of a double.
    NULL, BOOLEAN, INTEGER, DOUBLE = 3, 4, 5, 6
    # Bytes, for the reader of their place.
    PLACED = 7


class ValueRows(NamedTuple):
    """
    Keys or values.

    Attributes:
        start: Address of each; negative for null.
        length: Its bytes.
    """

    start: I64
    length: I64


class FoundFields(NamedTuple):
    """
    The field of each row.

    Attributes:
        form: Of `Form`.
        number: The number, or the address of the bytes.
        size: Number of bytes.
        place: Which of the program's places they have.
    """

    form: I64
    number: I64
    size: I64
    place: I64


class Frame(NamedRow):
    """
    What is around a step: a block of items, a type inside itself, or a message.

    Attributes:
        step: Where it goes on.
        left: Items that are left of a block; the type of a message.
        end: Where the message ends.
    """

    step: int
    left: int
    end: int


DEPTH = 48
"""Frames at most."""
