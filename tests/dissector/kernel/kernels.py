"""Kernels for the tests of what compiles, keeps and calls them."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from dissector.kernel import device_function

FACTOR = 31


class Colour(IntEnum):
    RED = 7


RED = Colour.RED

SOME = (2, 3, 5)

TEXT = "no number"


@device_function
def even(number: int) -> bool:
    return number == 0 or odd(number - 1)


@device_function
def odd(number: int) -> bool:
    return number != 0 and even(number - 1)


@device_function
def scaled(number: int) -> int:
    return number * FACTOR


def total(data: Any, start: int) -> int:
    """Return what all numbers give together."""
    for i in range(len(data)):
        start += scaled(data[i])
    return start


def fill(out: Any, number: int) -> None:
    for i in range(len(out)):
        out[i] = number + i


def place(rows: Any, row: int, column: int) -> int:
    rows[row, column] += 1
    return len(rows)


def least(data: Any) -> int:
    """Return an int32, which may be negative."""
    found = data[0]
    for i in range(len(data)):
        found = min(found, data[i])
    return found


def is_even(number: int) -> bool:
    return number % 2 == 0


def recursive(number: int) -> bool:
    return even(number)


def named() -> int:
    return RED * SOME[2]


def raising(number: int) -> int:
    if number == 3:
        raise ValueError
    return number


def texts() -> int:
    return len(TEXT)


def not_a_part() -> int:
    return total((), 1)


def allocating(number: int) -> int:
    return len([number])


def halved(number: int) -> float:
    return number / 2


def halving(numbers: Any) -> None:
    numbers[0] = numbers[0] / 2


def pair(number: int) -> tuple[int, int]:
    return number, number
