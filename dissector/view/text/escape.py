"""
Text from captures made safe to print.

Client ids, topics, keys come from whoever sent them. A terminal obeys control characters, and other
programs stumble over halves of surrogate pairs; so neither is ever written as it is.
"""

from __future__ import annotations

import re

_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def escaped(text: str) -> str:
    r"""Return text in which whatever is not printable is written as `\x1b` or `\u202e`."""
    return text if text.isprintable() else "".join(map(_escaped, text))


def quoted(text: str, longest: int = 200) -> str:
    """
    Return text in quotes, escaped; of a longer one the beginning and its length.

    Single quotes, where those keep it readable: JSON is full of double ones.
    """
    begin = text[:longest]
    mark = "'" if '"' in begin and "'" not in begin else '"'
    shown = escaped(begin.replace("\\", "\\\\").replace(mark, f"\\{mark}"))
    more = f"... ({len(text):,} characters)" if len(text) > longest else ""
    return f"{mark}{shown}{mark}{more}"


def hexed(data: bytes, longest: int = 32) -> str:
    """Return bytes as their number and their hex; of many bytes the first."""
    if not data:
        return "0 bytes"
    more = "..." if len(data) > longest else ""
    return f"{len(data):,} byte{'s' * (len(data) != 1)} {data[:longest].hex()}{more}"


def safe_json(text: str) -> str:
    r"""
    Escape what JSON allows in a string but a terminal obeys, or UTF-8 can't carry.

    The text stays the same JSON: `json.loads` gives what it would have given before. A byte that
    was no UTF-8 is written as its surrogate, `\udcff`.
    """
    return _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"  # a byte that was no UTF-8
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
