"""The leaves of a value in its bytes: what can be replaced so that the rest keeps its structure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from dissector.values.value_limits import ValueProblem

MAX_LEAVES = 100_000
"""A value of more leaves is replaced as a whole."""

_BITS_64 = 64


class LeafKind(Enum):
    """How the bytes of a leaf are to be read."""

    TEXT = "UTF-8"
    BYTES = "any bytes"
    VARINT = "a number in groups of seven bits, the lowest first"
    FLOAT = "a float of 4 or 8 bytes, the lowest first"
    JSON_TEXT = "a text of JSON, without its quotes"
    JSON_NUMBER = "a number of JSON"


class Leaf(NamedTuple):
    """
    A leaf, with its bytes [start, end).

    Attributes:
        kind: What it is.
        start: Where it begins.
        end: Where it ends.
        choices: Of a varint: the numbers that its type allows, unsigned as on the wire.
    """

    kind: LeafKind
    start: int
    end: int
    choices: Sequence[int] | range = range(1 << _BITS_64)


class Leaves(list[Leaf]):
    """Leaves, not too many."""

    def add(self, leaf: Leaf) -> None:
        """
        Add a leaf; one without bytes has nothing to replace.

        Raises:
            ValueProblem: There are too many.
        """
        if len(self) >= MAX_LEAVES:
            raise ValueProblem("too many parts")
        if leaf.end > leaf.start:
            self.append(leaf)


def varint_at(data: bytes, leaf: Leaf) -> int:
    """Return the number of a varint."""
    return sum((data[at] & 0x7F) << 7 * (at - leaf.start) for at in range(leaf.start, leaf.end))


def varint_of(number: int, size: int) -> bytes:
    """Return a number as a varint of as many bytes."""
    groups = [number >> 7 * at & 0x7F for at in range(size)]
    return bytes([*(each | 0x80 for each in groups[:-1]), groups[-1]])


def alike(choices: Sequence[int] | range, number: int) -> Sequence[int] | range:
    """
    Return those of the choices that a varint of the same size can hold, in order.

    A number that is not among the choices is replaced by any other.
    """
    choices = choices if number in choices else range(1 << _BITS_64)
    size = max((number.bit_length() + 6) // 7, 1)
    low = 1 << 7 * (size - 1) if size > 1 else 0
    high = min(1 << 7 * size, 1 << _BITS_64)
    if isinstance(choices, range):
        first = max(low, choices.start)
        first += (choices.start - first) % choices.step
        return range(first, min(high, choices.stop), choices.step)
    return sorted(each for each in choices if low <= each < high)


def count_of(choices: Sequence[int] | range) -> int:
    """Return the number of choices, which may be more than `len` allows."""
    if isinstance(choices, range):
        return max(0, -(-(choices.stop - choices.start) // choices.step))
    return len(choices)


def choice_at(choices: Sequence[int] | range, index: int) -> int:
    """Return one of the choices."""
    return choices.start + index * choices.step if isinstance(choices, range) else choices[index]


def is_text(data: bytes) -> bool:
    """Return whether bytes are UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def unsigned(numbers: Iterable[int]) -> list[int]:
    """Return signed numbers as they are on the wire, in 64 bits."""
    return [each & ((1 << _BITS_64) - 1) for each in numbers]
