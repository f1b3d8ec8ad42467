"""Writes numbers and bytes as text, inside kernels."""

from __future__ import annotations

from dissector.kernel.arrays import U8
from dissector.kernel.decorators import device_function

_MAX_NEGATED = 9_000_000_000_000_000_000


@device_function
def write_digits(value: int, out: U8, at: int) -> int:
    """Write a number that is not negative and return its end."""
    size = 1
    bound = 10
    while size < 19 and value >= bound:
        size += 1
        bound *= 10
    write_padded(value, size, out, at)
    return at + size


@device_function
def write_padded(value: int, size: int, out: U8, at: int) -> int:
    """Write a number with `size` digits, including leading zeros; return its end."""
    to = at + size
    while to > at + 1:
        to -= 2
        quotient = value // 100
        two = value - quotient * 100
        ten = two * 103 >> 10
        out[to] = 48 + ten
        out[to + 1] = 48 + two - ten * 10
        value = quotient
    if to > at:
        out[at] = 48 + value
    return at + size


@device_function
def write_integer(value: int, out: U8, at: int) -> int:
    """Write a number and return its end."""
    if value < 0:
        out[at] = 45
        at += 1
        if value < -_MAX_NEGATED:  # the smallest int64 can't be negated
            out[at] = 57
            return write_padded(-(value + _MAX_NEGATED), 18, out, at + 1)
        value = -value
    return write_digits(value, out, at)


@device_function
def write_hex(data: U8, start: int, length: int, out: U8, at: int) -> int:
    """Write bytes as hex and return where they end."""
    for i in range(start, start + length):
        byte = data[i]
        high = byte >> 4
        low = byte & 15
        out[at] = 48 + high if high < 10 else 87 + high
        out[at + 1] = 48 + low if low < 10 else 87 + low
        at += 2
    return at


@device_function
def write_uuid(source: U8, at: int, out: U8, to: int) -> int:
    """Write a uuid in its canonical form and return its end."""
    out[to] = 34
    to += 1
    for i in range(5):
        size = 4 if i == 0 else 6 if i == 4 else 2
        to = write_hex(source, at, size, out, to)
        at += size
        out[to] = 45 if i < 4 else 34
        to += 1
    return to


@device_function
def write_date(days: int, out: U8, at: int) -> int:
    """Write a day of the years 1 to 9999, counted from 1970-01-01, as `2023-11-14`."""
    # Years begin in March here, so that a leap day is the last of its year. An era has 400 years;
    # its days are counted from 0000-03-01.
    days += 719468
    era = days // 146097
    of_era = days - era * 146097
    year = (of_era - of_era // 1460 + of_era // 36524 - of_era // 146096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    day = of_year - (153 * month + 2) // 5 + 1
    month += 3
    if month > 12:
        month -= 12
        year += 1
    out[write_padded(year + era * 400, 4, out, at)] = 45
    out[write_padded(month, 2, out, at + 5)] = 45
    return write_padded(day, 2, out, at + 8)


@device_function
def write_clock(second: int, out: U8, at: int) -> int:
    """Write a second of a day as `22:13:20`."""
    out[write_padded(second // 3600, 2, out, at)] = 58
    out[write_padded(second // 60 % 60, 2, out, at + 3)] = 58
    return write_padded(second % 60, 2, out, at + 6)
