"""The input arrays of text kernels, in groups."""

from __future__ import annotations

from typing import NamedTuple

from dissector.kernel.arrays import I64, U8, I64Table


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


class RowArrays(NamedTuple):
    """
    The rows to write, as items; see `row_kernel`.

    Attributes:
        kinds: Kind of each item.
        places: Column of each item's cell.
        prefixes: Fragment with the constant bytes of each item; not written before a fragment.
        widths: Minimal width of each item that is a number; it is right-aligned.
        cells: [rows, columns].
        headers: [n, 4]: start and length of key and value of each header.
    """

    kinds: I64
    places: I64
    prefixes: I64
    widths: I64
    cells: I64Table
    headers: I64Table
