"""Finds signs of a credential in text: a device function."""

from __future__ import annotations

from dissector.kernel import device_function
from dissector.kernel.arrays import U8


@device_function
def may_hold_credential(source: U8, start: int, length: int) -> bool:
    """
    Return whether a text needs the exact check of `holds_credential`.

    Signs are white space, `@`, `=`, `:` outside an IPv6 address, and the beginning of a JSON web
    token.
    """
    previous = 0
    second_previous = 0
    for i in range(start, start + length):
        byte = 0 | source[i]
        if byte <= 32 or byte == 61 or byte == 64:
            return True
        # A `:` after a quote, or up to two characters after a letter that is not a hexadecimal
        # digit.
        if byte == 58 and (
            previous == 34 or previous == 39 or previous | 32 > 102 or second_previous | 32 > 102
        ):
            return True
        # `eyJ`
        if byte == 74 and previous == 121 and second_previous == 101:
            return True
        second_previous = previous
        previous = byte
    return False
