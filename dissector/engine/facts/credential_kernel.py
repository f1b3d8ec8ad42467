"""Finds signs of a credential in text: a device function."""

from __future__ import annotations

from dissector.kernel import device_function
from dissector.kernel.arrays import U8
from dissector.protocol.login_secrets import MIN_BYTES, SIGN_FACTOR, SIGN_SHIFT, WORD


@device_function
def may_hold_credential(source: U8, start: int, length: int, signs: U8) -> bool:
    r"""
    Return whether a text needs the exact check of `holds_credential`.

    Signs are white space, quotes, `%`, `&`, `<`, `=`, `@`, `\`, `:` outside an IPv6 address, and
    the beginning of a JSON web token, and those of secrets that logins showed (`Logins.signs`).
    """
    previous = 0
    second_previous = 0
    first = start + MIN_BYTES - 1 if len(signs) > 0 else start + length
    last_bytes = 0
    for i in range(start, start + length):
        byte = int(source[i])
        if byte <= 34 or (byte >= 37 and byte <= 39) or byte == 60 or byte == 61:
            return True
        if byte == 64 or byte == 92:
            return True
        # A `:` up to two characters after a letter that is not a hexadecimal digit.
        if byte == 58 and (previous | 32 > 102 or second_previous | 32 > 102):
            return True
        # `eyJ`
        if byte == 74 and previous == 121 and second_previous == 101:
            return True
        last_bytes = (last_bytes << 8 | byte) & WORD
        if i >= first and signs[(last_bytes * SIGN_FACTOR & WORD) >> SIGN_SHIFT] != 0:
            return True
        second_previous = previous
        previous = byte
    return False
