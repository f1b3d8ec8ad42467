"""Kernels with all supported language features, in Python and compiled."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from dissector.kernel import Kernel, device_function
from dissector.kernel.arrays import I32, I64, U8, AnyColumn, I8Table, I64Cube, I64Table
from dissector.kernel.crc32c import update_crc, update_crc_by_table
from dissector.kernel.memcpy import copy_bytes
from dissector.kernel.named_rows import NamedRow, Rows, Two


class Colour(IntEnum):
    RED = 7


RED = Colour.RED
FIRST, SECOND = range(2)
SOME = (2, 3, 5)
SET = frozenset({11, 13})
SIZES = (0, 2, 4, 8)
LEAST = -(1 << 63)


class Sums(NamedTuple):
    """A group of arrays."""

    numbers: I64
    table: I64Table
    flags: U8


class Outer(NamedTuple):
    """A group with groups."""

    first: Sums
    second: Sums
    total: I64


class Side(NamedRow):
    """A direction of a link."""

    sent: int
    is_open: bool


class Link(NamedRow):
    """A link: its number, two directions, and two limits."""

    number: int
    sides: Two[Side]
    limits: Two[int]


class Totals(NamedRow):
    """One row."""

    sent: int
    sequence: int


class Links(NamedTuple):
    """A group with tables and a row."""

    links: Rows[Link]
    others: Rows[Link]
    totals: Totals
    lengths: I64


@device_function
def busiest(side: Side, other: Side) -> Side:
    return side if side.sent >= other.sent else other


@device_function
def send(side: Side, length: int) -> None:
    side.sent += length
    side.is_open = True


@Kernel
def send_all(tables: Links, limit: int) -> int:
    """Send on each link in turn, on the first side up to its limit; return what is left over."""
    left = 0
    for i in range(len(tables.lengths)):
        if i % 2 == 0:
            link = tables.links[i % len(tables.links)]
        else:
            link = tables.others[0]
        side = link.sides[i % len(link.sides)]
        link.limits[i & 1] = limit
        if side.sent + tables.lengths[i] > link.limits[i & 1]:
            left += tables.lengths[i]
            continue
        send(side, tables.lengths[i])
        tables.totals.sent += tables.lengths[i]
        tables.totals.sequence = link.number
    most = busiest(tables.links[0].sides[0], tables.links[0].sides[1])
    most.is_open = most.sent == 0
    return left


@Kernel
def sum_links(links: Rows[Link], at: int) -> int:
    """Return the numbers of links, and what is sent on one; nothing is written."""
    total = links[at].sides[1].sent
    for i in range(len(links)):
        total += links[i].number
    return total


@Kernel
def count_row(totals: Totals) -> None:
    """Write to a row that is an argument."""
    totals.sequence += 1


@device_function
def add_to_row(sums: Sums, row: int) -> None:
    for i in range(len(sums.numbers)):
        sums.table[row, i] += sums.numbers[i]


@device_function
def total_of(numbers: I64) -> int:
    return numbers[0] + numbers[len(numbers) - 1]


@device_function
def is_even(number: int) -> bool:
    return number == 0 or is_odd(number - 1)


@device_function
def is_odd(number: int) -> bool:
    return number != 0 and is_even(number - 1)


@device_function
def divided(a: int, b: int) -> tuple[int, int]:
    return a // b, a % b


@device_function
def total(column: AnyColumn, start: int = RED) -> int:
    """Return the sum of a column of any type."""
    for i in range(len(column)):
        start += column[i]
    return start


@Kernel
def arithmetic(out: I64, a: int, b: int) -> None:
    """Write the results of operators."""
    out[0], out[1], out[2], out[3] = a + b, a - b, a * b, a & b
    out[4], out[5], out[6], out[7] = a | b, a ^ b, -a, ~b
    out[8] = a << (b & 31)
    out[9] = a >> (b & 31)
    out[10] = a < b <= 9
    out[11] = min(a, b, 5)
    out[12] = max(a, b, -5)
    out[13] = a or b
    out[14] = a and b
    out[15] = not a
    out[16] = 3 if a > b else 4
    out[17] = a in SOME or b in SET
    out[18] = LEAST
    out[19] = int(bool(a)) + Colour.RED
    if b != 0:
        out[20], out[21] = divided(a, b)
    out[22] = 1 << (b & 62)
    out[23] = SIZES[b & 3]


@Kernel
def sums(small: U8, numbers: I32, large: I64) -> int:
    """Return one sum of columns of three types."""
    return total(small) * 1000 + total(numbers, 1) + total(large, 0)


@Kernel
def walk(table: I8Table, cube: I64Cube, rows: I64Table) -> int:
    """Write each index of arrays of two and three dimensions."""
    count = 0
    for row in range(len(table)):
        for column in (FIRST, SECOND, SECOND + 1):
            if column == RED:
                continue
            table[row, column] = 10 * row + column
            cube[1, row, column - column] += count
            count += 1
    rows[FIRST, SECOND] += count
    while True:
        count -= 2
        if count <= 0:
            break
    return count if is_even(10) else len(rows)


@Kernel
def choose(first: U8, second: U8, at: int) -> int:
    """Read either of two arrays."""
    source, base = first, 0
    if at >= len(first):
        source, base = second, len(first)
    return source[at - base]


@Kernel
def fill(out: I32, number: int) -> None:
    """Fill an array with a number."""
    for i in range(len(out)):
        out[i] = number


@Kernel
def far(numbers: I64, at: int) -> int:
    """Read at an index possibly outside the array."""
    return numbers[at]


@Kernel
def move(target: U8, at: int, source: U8, start: int, length: int) -> int:
    """Copy bytes, and return the end of the copy."""
    copy_bytes(target, at, source, start, length)
    return at + length


@Kernel
def advance(source: U8, at: int, end: int, table: I64) -> int:
    """Return the CRC-32C of a multiple of eight bytes."""
    value = 0xFFFFFFFF
    while at < end:
        value = update_crc(value, source, at, table)
        at += 8
    return value ^ 0xFFFFFFFF


@Kernel
def advance_by_table(source: U8, at: int, end: int, table: I64) -> int:
    """Return the same without the CRC instruction of the processor."""
    value = 0xFFFFFFFF
    while at < end:
        value = update_crc_by_table(value, source, at, table)
        at += 8
    return value ^ 0xFFFFFFFF


@Kernel
def add_rows(sums: Sums, rows: int) -> int:
    """Write to one array of a group, and read the others."""
    numbers = sums.numbers
    for row in range(rows):
        if sums.flags[row] != 0:
            add_to_row(sums, row)
    return total_of(sums.numbers) + numbers[0]


@device_function
def add_numbers(numbers: I64, sums: Sums) -> None:
    for i in range(len(numbers)):
        sums.numbers[i] += numbers[i]


@Kernel
def add_groups(outer: Outer) -> int:
    """Write to an array of a group in a group, and to one beside the groups."""
    source = outer.first
    add_numbers(source.numbers, outer.second)
    outer.total[0] += total_of(outer.second.numbers)
    return len(source.table)
