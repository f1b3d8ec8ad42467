"""The fields of a message as they are on the wire, without their declarations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from dissector.values.protobuf.wire_format import (
    ENDS_EARLY,
    FIXED_32,
    FIXED_64,
    GROUP,
    GROUP_END,
    SIZED,
    VARINT,
    read_span,
    read_varint,
)
from dissector.values.value_limits import MAX_DEPTH, ValueProblem

_FIXED = {FIXED_32: 4, FIXED_64: 8}

_MAX_GROUP_BYTES = 1 << 20
"""The fields of a group are kept, to read each once; of more bytes it is refused."""


class Piece(NamedTuple):
    """
    One field on the wire: bytes [key, end), of which [start, stop) are its content.

    Attributes:
        number: Of the field.
        wire: Its wire type.
        key: Where its key begins.
        start: Where its content begins, behind a size.
        stop: Where its content ends.
        end: Where it ends; of a group behind the key that ends it.
        inner: The fields of a group.
    """

    number: int
    wire: int
    key: int
    start: int
    stop: int
    end: int
    inner: Sequence[Piece] = ()

    @property
    def wire_key(self) -> int:
        """Its key on the wire."""
        return self.number << 3 | self.wire

    def content(self, data: bytes) -> Iterable[Piece]:
        """Return the fields of a message that is its content."""
        return self.inner if self.wire == GROUP else pieces(data, self.start, self.stop)


def pieces(data: bytes, at: int, end: int, depth: int = 0) -> Iterator[Piece]:
    """
    Yield the fields of a message in [at, end).

    Raises:
        ValueProblem: They do not fit.
        IndexError: They end early.
    """
    while at < end:
        begin = at
        key, at = read_varint(data, at)
        number, wire, start = key >> 3, key & 7, at
        inner: Sequence[Piece] = ()
        if wire == VARINT:
            _, at = read_varint(data, at)
            stop = at
        elif wire == SIZED:
            start, stop = read_span(data, at, end)
            at = stop
        elif wire in _FIXED:
            stop = at = at + _FIXED[wire]
        elif wire == GROUP:
            inner, stop, at = _group(data, at, end, number, depth)
        else:
            raise ValueProblem(f"a field of wire type {wire} before byte {at:,}")
        if at > end:
            raise ValueProblem(ENDS_EARLY)
        yield Piece(number, wire, begin, start, stop, at, inner)


def _group(
    data: bytes, at: int, end: int, number: int, depth: int
) -> tuple[Sequence[Piece], int, int]:
    """Return the fields of a group, where its content ends, and where the key behind it does."""
    if depth > MAX_DEPTH:
        raise ValueProblem(f"nested deeper than {MAX_DEPTH} levels")
    last, limit = number << 3 | GROUP_END, at + _MAX_GROUP_BYTES
    inner: list[Piece] = []
    while at < end:
        key, behind = read_varint(data, at)
        if key == last:
            return inner, at, behind
        if at > limit:
            raise ValueProblem(f"a group of more than {_MAX_GROUP_BYTES:,} bytes")
        inner.append(next(pieces(data, at, end, depth + 1)))
        at = inner[-1].end
    raise ValueProblem(ENDS_EARLY)
