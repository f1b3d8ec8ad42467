"""Writes parts of values as JSON in kernels, as decoders and `json` do: numbers, texts, times."""

from __future__ import annotations

from dissector.kernel import device_function
from dissector.kernel.arrays import U8
from dissector.kernel.digits import (
    write_clock,
    write_date,
    write_digits,
    write_hex,
    write_integer,
    write_padded,
    write_uuid,
)
from dissector.kernel.json_strings import write_json_string
from dissector.kernel.memcpy import copy_bytes
from dissector.kernel.shortest_doubles import write_decimal, write_double
from dissector.values.steps.field_arrays import MAX_KEYS, TextOutput
from dissector.values.steps.varint_kernels import is_finite

REFUSED, FULL = -1, -2
"""Instead of an end: the value is left to the decoder; the output has no room."""


class Put:
    """How a part of a value is written."""

    # Integers: with a sign, without one; a double by its bits; true or false.
    INTEGER, UNSIGNED, DOUBLE, BOOLEAN = 0, 1, 2, 3
    # Bytes: a text; as hex; as base64; a UUID; a decimal number with the places of a scale.
    TEXT, HEX, BASE64, UUID, DECIMAL = 4, 5, 6, 7, 8
    # Integers: a day; a time of a day and times in UTC and of no zone, with so many places.
    DATE, CLOCK, TIMESTAMP, LOCAL_TIMESTAMP = 9, 10, 11, 12
    # Others than `put` writes: the name that an integer has in an enum; null.
    NAME, NULL = 13, 14


_MAX_NUMBER_BYTES = 64
_SPACE, _QUOTE, _COMMA, _MINUS, _POINT = 32, 34, 44, 45, 46
_LETTER_T, _LETTER_Z, _LIST, _LETTER_S, _MAP = 84, 90, 91, 115, 123
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
"""Of the years 1 to 9999."""
_DAY_SECONDS = 86_400
_MAX_DECIMAL = 10**15
"""Decimals below are numbers, the others texts."""
_MAX_INT64 = 2**63 - 1
_NANOS = 10**9
_MAX_DURATION = 315_576_000_000


@device_function
def put(
    data: U8, begin: int, end: int, number: int, how: int, scale: int, text: TextOutput, to: int
) -> int:
    """
    Write a part of a value.

    Args:
        data: The bytes with the value.
        begin: Where a content of bytes begins.
        end: Where it ends.
        number: The number of others.
        how: Of `Put`.
        scale: Places behind the point.
        text: The output.
        to: Where it goes on; `REFUSED` or `FULL` stay what they are.

    Returns:
        The end of what is written, or `REFUSED` or `FULL`.
    """
    if to < 0:
        return to
    out = text.out
    size = end - begin
    is_bytes = how in (Put.TEXT, Put.HEX, Put.BASE64)
    if (6 * size if is_bytes else 0) + _MAX_NUMBER_BYTES > len(out) - to:
        return FULL
    if how == Put.TEXT:
        return write_json_string(data, begin, size, 0, text.unsafe, out, to)
    if how == Put.INTEGER:
        return write_integer(number, out, to)
    if how == Put.DOUBLE:
        return write_double(number, text.powers, out, to) if is_finite(number) else REFUSED
    if how == Put.BOOLEAN:
        return _put_boolean(number, out, to)
    if how == Put.UNSIGNED:
        return _put_unsigned(number, out, to)
    if how == Put.DECIMAL:
        return _put_decimal(data, begin, end, scale, out, to)
    if how == Put.UUID:
        return write_uuid(data, begin, out, to)
    out[to] = _QUOTE
    if how == Put.HEX:
        to = write_hex(data, begin, size, out, to + 1)
    elif how == Put.BASE64:
        to = _put_base64(data, begin, end, out, to + 1)
    else:
        to = _put_time(number, how, scale, out, to + 1)
        if to < 0:
            return to
    out[to] = _QUOTE
    return to + 1


@device_function
def put_literal(literals: U8, start: int, size: int, text: TextOutput, to: int) -> int:
    """Write bytes of the program; return their end, `FULL`, or what it was before."""
    if to < 0:
        return to
    if size > len(text.out) - to:
        return FULL
    copy_bytes(text.out, to, literals, start, size)
    return to + size


@device_function
def put_comma(text: TextOutput, to: int) -> int:
    """Write a comma, but for the first item of a list or a map; see `put_literal`."""
    if to < 0:
        return to
    if to + 2 > len(text.out):
        return FULL
    before = text.out[to - 1]
    if before in (_LIST, _MAP):
        return to
    text.out[to] = _COMMA
    text.out[to + 1] = _SPACE
    return to + 2


@device_function
def is_new_key(text: TextOutput, first: int, known: int, start: int, end: int) -> int:
    """Keep the text of a key as the next of those known; 0 if its map has it, or there are many."""
    if known == MAX_KEYS:
        return 0
    size = end - start
    for i in range(first, known):
        if text.keys[i].size == size:
            other = text.keys[i].start
            same = 0
            while same < size and text.out[other + same] == text.out[start + same]:
                same += 1
            if same == size:
                return 0
    text.keys[known].start = start
    text.keys[known].size = size
    return 1


@device_function
def _put_boolean(number: int, out: U8, to: int) -> int:
    if number:
        out[to] = 116
        out[to + 1] = 114
        out[to + 2] = 117
        out[to + 3] = 101
        return to + 4
    out[to] = 102
    out[to + 1] = 97
    out[to + 2] = 108
    out[to + 3] = 115
    out[to + 4] = 101
    return to + 5


@device_function
def _put_unsigned(bits: int, out: U8, to: int) -> int:
    if bits >= 0:
        return write_digits(bits, out, to)
    half = bits >> 1 & _MAX_INT64
    tens = half // 5
    to = write_digits(tens, out, to)
    out[to] = 48 + (half - 5 * tens) * 2 + (bits & 1)
    return to + 1


@device_function
def _put_base64(data: U8, begin: int, end: int, out: U8, to: int) -> int:
    while begin < end:
        left = end - begin
        bits = data[begin] << 16
        if left > 1:
            bits |= data[begin + 1] << 8
        if left > 2:
            bits |= data[begin + 2]
        for i in range(4):
            out[to + i] = _base64_letter(bits >> (18 - 6 * i) & 63) if i <= left else 61
        begin += 3
        to += 4
    return to


@device_function
def _base64_letter(six: int) -> int:
    if six < 26:
        return 65 + six
    if six < 52:
        return 71 + six
    if six < 62:
        return six - 4
    return 43 if six == 62 else 47


@device_function
def _put_decimal(data: U8, begin: int, end: int, scale: int, out: U8, to: int) -> int:
    """Write a big-endian number with a scale: a number, or a text if it has too many digits."""
    if end - begin > 8:
        return REFUSED
    number = 0
    if end > begin and data[begin] >= 0x80:
        number = -1
    for i in range(begin, end):
        number = number << 8 | data[i]
    if scale == 0:
        return write_integer(number, out, to)
    if number <= -_MAX_DECIMAL or number >= _MAX_DECIMAL or scale >= 15:
        return REFUSED
    if number < 0:
        out[to] = _MINUS
        to += 1
        number = -number
    return write_decimal(number, -scale, out, to)


@device_function
def put_seconds(seconds: int, nanos: int, is_time: int, text: TextOutput, to: int) -> int:
    """Write a time, or a duration, in seconds and nanoseconds as Protobuf does; see `put`."""
    if to < 0:
        return to
    if len(text.out) - to < _MAX_NUMBER_BYTES:
        return FULL
    out = text.out
    out[to] = _QUOTE
    to += 1
    if is_time:
        day = seconds // _DAY_SECONDS
        if day < _FIRST_DAY or day > _LAST_DAY or nanos < 0 or nanos >= _NANOS:
            return REFUSED
        to = write_date(day, out, to)
        out[to] = _LETTER_T
        to = write_clock(seconds - day * _DAY_SECONDS, out, to + 1)
    else:
        is_mixed = (seconds < 0 and nanos > 0) or (seconds > 0 and nanos < 0)
        if (
            is_mixed
            or max(nanos, -nanos) >= _NANOS
            or not -_MAX_DURATION <= seconds <= _MAX_DURATION
        ):
            return REFUSED
        if seconds < 0 or nanos < 0:
            out[to] = _MINUS
            to += 1
            seconds = -seconds
            nanos = -nanos
        to = write_digits(seconds, out, to)
    places = 9
    while nanos > 0 and nanos % 1000 == 0:
        nanos = nanos // 1000
        places -= 3
    if nanos > 0:
        out[to] = _POINT
        to = write_padded(nanos, places, out, to + 1)
    out[to] = _LETTER_Z if is_time else _LETTER_S
    out[to + 1] = _QUOTE
    return to + 2


@device_function
def _put_time(number: int, how: int, scale: int, out: U8, to: int) -> int:
    if how == Put.DATE:
        if number < _FIRST_DAY or number > _LAST_DAY:
            return REFUSED
        return write_date(number, out, to)
    units = 1
    for _ in range(scale):
        units *= 10
    second = number // units
    rest = number - second * units
    if how != Put.CLOCK:
        day = second // _DAY_SECONDS
        if day < _FIRST_DAY or day > _LAST_DAY:
            return REFUSED
        second -= day * _DAY_SECONDS
        to = write_date(day, out, to)
        out[to] = _LETTER_T
        to += 1
    if second < 0 or second >= _DAY_SECONDS:
        return REFUSED
    to = write_clock(second, out, to)
    out[to] = _POINT
    to = write_padded(rest, scale, out, to + 1)
    if how == Put.TIMESTAMP:
        out[to] = _LETTER_Z
        to += 1
    return to
