"""What readers of Avro's types read, for those who step over values without them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from dissector.values.avro.avro_types import Read


class Record(NamedTuple):
    """
    Fields, one after the other.

    Attributes:
        fields: Their names and readers.
        output: What the record takes of the output.
    """

    fields: Sequence[tuple[str, Read]]
    output: int


class Union(NamedTuple):
    """The number of a branch, and its value."""

    branches: Sequence[Read]


class Blocks(NamedTuple):
    """Blocks of items: of an array, or of the keys and values of a map."""

    parts: Sequence[Read]


class Fixed(NamedTuple):
    """As many bytes."""

    size: int


class Symbols(NamedTuple):
    """The number of a symbol, which takes so much of the output at most."""

    names: Sequence[str]
    output: int


class Converted(NamedTuple):
    """What another reader reads, in the form of a logical type; the scale is that of decimals."""

    read: Read
    logical: str
    scale: int


class Recursive(NamedTuple):
    """A type inside itself; `target` returns its reader."""

    target: Callable[[], Read]


Shape: TypeAlias = Record | Union | Blocks | Fixed | Symbols | Converted | Recursive
