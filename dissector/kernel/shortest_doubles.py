"""
Writes doubles as Python and JSON do: with the fewest digits that read as the same number.

The algorithm is Schubfach, which needs products of 64 and 126 bits, and no more. Products are made
of halves here, as integers of kernels have 64 bits with their sign.

Source: Raffaello Giulietti, The Schubfach way to render doubles (2021), sections 8 and 9; the same
in OpenJDK's DoubleToDecimal.java and MathUtils.java.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dissector.kernel.arrays import I64, U8
from dissector.kernel.decorators import device_function
from dissector.kernel.digits import write_digits, write_padded

_FRACTION_BITS = 52
_HIDDEN_BIT = 1 << _FRACTION_BITS
_FRACTION = _HIDDEN_BIT - 1
_EXPONENT = 0x7FF
_LEAST_EXPONENT = -1074
_WORD = 0xFFFFFFFF
_MAX = 2**63 - 1

_LEAST_POWER = -324
_MOST_POWER = 292

_LOG10_2 = 661_971_961_083
"""Of 2, by 2^41."""
_LOG10_3_4 = -274_743_187_321
"""Of three quarters, by 2^41."""
_LOG2_10 = 913_124_641_741
"""Of 10, by 2^38."""

_POSITIONAL = 16
"""Digits before the point, at most, without an exponent."""
_LEAST_POSITIONAL = -4
"""Exponent of the least number that is written without one."""


class PowersOf10(NamedTuple):
    """
    10^-k for k from -324 to 292, by a power of 2: 126 bits, rounded up.

    Attributes:
        high: The upper 63 bits.
        low: The lower 63 bits.
    """

    high: I64
    low: I64


def powers_of_10() -> PowersOf10:
    """Return the powers that `write_double` needs."""
    every = [_power(k) for k in range(_LEAST_POWER, _MOST_POWER + 1)]
    high = np.array([each >> 63 for each in every], np.int64)
    low = np.array([each & _MAX for each in every], np.int64)
    return PowersOf10._make((high, low))


def _power(k: int) -> int:
    """Return the least integer above 10^-k 2^r, for the r with which it has 126 bits."""
    numerator, denominator = (10**-k, 1) if k < 0 else (1, 10**k)
    found = (numerator << 1_200) // denominator
    return (found >> found.bit_length() - 126) + 1


@device_function
def write_double(bits: int, powers: PowersOf10, out: U8, at: int) -> int:
    """Write a finite double, of which the bits are given, and return its end."""
    if bits < 0:
        out[at] = 45
        at += 1
        bits &= _MAX
    if bits == 0:
        return write_decimal(0, 0, out, at)
    fraction = bits & _FRACTION
    exponent = bits >> _FRACTION_BITS
    q = _LEAST_EXPONENT + exponent - 1
    c = _HIDDEN_BIT | fraction
    if exponent == 0:
        q = _LEAST_EXPONENT
        c = fraction
    elif -_FRACTION_BITS <= q <= 0 and c & ((1 << -q) - 1) == 0:
        return write_decimal(c >> -q, 0, out, at)  # an integer
    digits, power = _shortest(c, q, powers)
    return write_decimal(digits, power, out, at)


@device_function
def _shortest(c: int, q: int, powers: PowersOf10) -> tuple[int, int]:
    """Return digits and a power of 10 for c 2^q: the fewest, and the closest of these."""
    odd = c & 1
    lower = 4 * c - 2
    k = q * _LOG10_2 >> 41
    if c == _HIDDEN_BIT and q > _LEAST_EXPONENT:  # the number below is closer than that above
        lower = 4 * c - 1
        k = (q * _LOG10_2 + _LOG10_3_4) >> 41
    h = q + (-k * _LOG2_10 >> 38) + 2
    high = powers.high[k - _LEAST_POWER]
    low = powers.low[k - _LEAST_POWER]
    value = _product(high, low, 4 * c << h)
    least = _product(high, low, lower << h) + odd
    most = _product(high, low, (4 * c + 2) << h) - odd
    s = value >> 2
    if s >= 10:
        tens = s // 10
        is_above = 1 if 40 * tens >= least else 0
        is_below = 1 if 40 * tens + 40 <= most else 0
        if is_above != is_below:
            return tens + is_below, k + 1
    is_above = 1 if 4 * s >= least else 0
    is_below = 1 if 4 * s + 4 <= most else 0
    if is_above != is_below:
        return s + is_below, k
    from_middle = value - (4 * s + 2)
    if from_middle > 0 or (from_middle == 0 and s & 1 == 1):
        s += 1
    return s, k


@device_function
def _product(high: int, low: int, factor: int) -> int:
    """Return the product of 126 and 63 bits without its lower 127; the last bit says if any is."""
    of_low, _ = _halves(low, factor)
    upper, lower = _halves(high, factor)
    # The sum of two numbers of 63 bits: its carry, and whether anything is left below that.
    if lower > _MAX - of_low:
        upper += 1
        lower -= _MAX - of_low + 1
    else:
        lower += of_low
    return upper | (1 if lower > 0 else 0)


@device_function
def _halves(a: int, b: int) -> tuple[int, int]:
    """Return the upper 64 bits of a product of numbers of 63 bits, and the 63 below them."""
    a1 = a >> 32
    a0 = a & _WORD
    b1 = b >> 32
    b0 = b & _WORD
    tail = (a0 & 0xFFFF) * b0
    lowest = (a0 >> 16) * b0 + (tail >> 16)
    one = a1 * b0
    other = a0 * b1
    middle = (one & _WORD) + (other & _WORD) + (lowest >> 16)
    upper = a1 * b1 + (one >> 32) + (other >> 32) + (middle >> 32)
    last = (lowest & 0xFFFF) << 16 | tail & 0xFFFF
    return upper, (middle & _WORD) << 31 | last >> 1


@device_function
def write_decimal(digits: int, power: int, out: U8, at: int) -> int:
    """
    Write digits and a power of 10 as the text of a float, and return its end.

    Args:
        digits: A number that is not negative.
        power: The power of its last digit.
        out: The output buffer.
        at: Where it begins.
    """
    if digits == 0:
        power = 0
    while digits % 10 == 0 and digits > 0:
        digits = digits // 10
        power += 1
    end = write_digits(digits, out, at)
    size = end - at
    exponent = power + size - 1
    if exponent >= _POSITIONAL or exponent < _LEAST_POSITIONAL:
        return _with_exponent(exponent, out, at, end)
    if power >= 0:
        for i in range(end, end + power):
            out[i] = 48
        out[end + power] = 46
        out[end + power + 1] = 48
        return end + power + 2
    zeros = -exponent if exponent < 0 else 0
    begin = at + (exponent + 1 if exponent >= 0 else 0)
    behind = 1 if exponent >= 0 else 1 + zeros
    for i in range(end - 1, begin - 1, -1):
        out[i + behind] = out[i]
    if exponent >= 0:
        out[begin] = 46
        return end + 1
    for i in range(at, at + behind):
        out[i] = 48
    out[at + 1] = 46
    return end + behind


@device_function
def _with_exponent(exponent: int, out: U8, at: int, end: int) -> int:
    """Write a point behind the first digit, if there are more, and the exponent; return its end."""
    if end > at + 1:
        for i in range(end - 1, at, -1):
            out[i + 1] = out[i]
        out[at + 1] = 46
        end += 1
    out[end] = 101
    out[end + 1] = 43
    if exponent < 0:
        out[end + 1] = 45
        exponent = -exponent
    if exponent >= 100:
        return write_padded(exponent, 3, out, end + 2)
    return write_padded(exponent, 2, out, end + 2)
