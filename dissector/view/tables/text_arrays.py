"""The input arrays of text kernels, in groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from dissector.kernel.arrays import I64, U8, I64Table
from dissector.kernel.named_rows import NamedRow, Rows


class TextArrays(NamedTuple):
    """
    The output, and the bytes copied to it.

    Attributes:
        pool: The bytes of all fragments.
        offsets: Offset of each fragment in `pool`, with the end of the last.
        unsafe: For each byte, whether JSON or terminals need it escaped.
        out: The output buffer.
    """

    pool: U8
    offsets: I64
    unsafe: U8
    out: U8


class TextUse(NamedRow):
    """
    How much of the output buffer is used.

    Attributes:
        bytes: Number of bytes written.
    """

    bytes: int


@dataclass(slots=True)
class ItemLayout(NamedRow):
    """
    An item of every row; see `row_kernel`.

    Attributes:
        kind: Its kind.
        place: Column of its cell.
        prefix: Fragment with its constant bytes; not written before a fragment.
        width: Minimal width if it is a number; it is right-aligned.
    """

    kind: int
    place: int
    prefix: int
    width: int


class HeaderSlices(NamedTuple):
    """Addresses and lengths of keys and values of the headers of records."""

    key: I64
    key_length: I64
    value: I64
    value_length: I64


class RowArrays(NamedTuple):
    """
    The rows to write, as items; see `row_kernel`.

    Attributes:
        items: The items of every row.
        cells: [rows, columns].
    """

    items: Rows[ItemLayout]
    cells: I64Table
