"""The operands of a filter in a row: columns, body fields, and functions of their values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from dissector.filter import kinds
from dissector.protocol.api import Kind as Side

Step: TypeAlias = Callable[[Any], Iterable[object]]
"""Returns the values represented by a value: a function of it, or parts of it."""


@dataclass(frozen=True, slots=True)
class Column:
    """
    A column of `pairs` or `records`.

    Attributes:
        name: The column.
        port: Whether only the port of its address is tested.
        empty: Value for comparisons only, where it represents an empty list too: an
            exchange without errors has NONE.
        is_record_column: Whether it is a column of `records`.
        part: For headers, what is tested of each: `key`, `value`, or `text` for both.
        header: Key of the only headers that are tested; None for all.
        path: Of a decoded key or value, the path of the field that is tested.
    """

    name: str
    port: bool = False
    empty: str | None = None
    is_record_column: bool = False
    part: str | None = None
    header: str | None = None
    path: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BodyPath:
    """A field of a decoded body, or of a column of hooks: which one, and the path of the field."""

    kind: Side | Literal["hook"]
    path: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join((self.kind, *self.path))


Source: TypeAlias = Column | BodyPath


@dataclass(frozen=True, slots=True)
class Name:
    """
    A name as written in the filter.

    Attributes:
        text: As written.
        sources: The sources of its values: a test is true if it is true for a value of any of them.
        kinds: The possible kinds of its values; several where APIs differ.
        steps: Applied to each value, in order.
        is_count: Whether it is the number of the values.
        is_flag: Whether the bare name tests for true; for other names it tests for a value.
    """

    text: str
    sources: tuple[Source, ...] = field(compare=False)
    kinds: tuple[kinds.Kind, ...] = field(compare=False)
    steps: tuple[Step, ...] = field(compare=False, default=(), repr=False)
    is_count: bool = field(compare=False, default=False)
    is_flag: bool = field(compare=False, default=False)

    def __str__(self) -> str:
        return self.text


_PACKET_FACTS = {"frame_bytes": "lengths", "comments": "comments"}
"""Facts of packets by the last words of columns."""


def packet_facts(columns: Iterable[Column]) -> frozenset[str]:
    """Return what columns need of packets that a reading keeps on request only."""
    names = [each.name for each in columns]
    ends = _PACKET_FACTS.items()
    return frozenset(fact for end, fact in ends if any(each.endswith(end) for each in names))


class UnknownName(Exception):
    """No such name; `offset` is the position of the unknown part in it."""

    def __init__(self, reason: str, offset: int = 0) -> None:
        super().__init__(reason)
        self.offset = offset


def apply_steps(steps: tuple[Step, ...], value: object) -> Iterable[object]:
    """Return the result of the steps for a value."""
    values: list[object] = [value]
    for step in steps:
        values = [result for each in values for result in step(each)]
    return values
