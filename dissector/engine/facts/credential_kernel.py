"""A quick look at text for signs of a credential: a part of loops over messages."""

from __future__ import annotations

from typing import Any

from dissector.kernel import device_function


@device_function
def may_hold_credential(source: Any, start: int, length: int) -> bool:
    """
    Return whether a text needs the exact look of `holds_credential`.

    Signs are white space, `@`, `=`, `:` where it is in no IPv6 address, and the beginning of a JSON
    web token.
    """
    before = 0
    earlier = 0
    for i in range(start, start + length):
        byte = 0 | source[i]
        if byte <= 32 or byte == 61 or byte == 64:
            return True
        # A `:` behind a quote, or behind a letter that is no hexadecimal digit, up to two back.
        if byte == 58 and (before == 34 or before == 39 or before | 32 > 102 or earlier | 32 > 102):
            return True
        # `eyJ`
        if byte == 74 and before == 121 and earlier == 101:
            return True
        earlier = before
        before = byte
    return False
