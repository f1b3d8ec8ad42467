"""
Escapes text from captures, so that it is safe to print.

Client ids, topics and keys are untrusted. Terminals obey control characters, and other programs
fail on lone surrogates; so neither is ever written unescaped.
"""

from __future__ import annotations

import re

VARIABLE_PARTS = re.compile(r"'[^']*'|\"[^\"]*\"|[0-9a-f]{8}-[0-9a-f-]{27}|-?\d+")
"""The parts that distinguish equal findings: quoted words, ids, numbers."""

_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


def escaped(text: str) -> str:
    r"""Return text with non-printable characters as `\x1b` or `\u202e`."""
    return text if text.isprintable() else "".join(map(_escaped, text))


def quoted(text: str, longest: int = 200) -> str:
    """
    Return text in quotes, escaped; of a longer text its beginning and its length.

    Single quotes are used where the text has only double ones, as JSON does.
    """
    begin = text[:longest]
    mark = "'" if '"' in begin and "'" not in begin else '"'
    shown = escaped(begin.replace("\\", "\\\\").replace(mark, f"\\{mark}"))
    more = f"... ({len(text):,} characters)" if len(text) > longest else ""
    return f"{mark}{shown}{mark}{more}"


def hexed(data: bytes, longest: int = 32) -> str:
    """Return the number of bytes and their hex; of many bytes only the first."""
    if not data:
        return "0 bytes"
    more = "..." if len(data) > longest else ""
    return f"{len(data):,} byte{'s' * (len(data) != 1)} {data[:longest].hex()}{more}"


def safe_json(text: str) -> str:
    r"""
    Escape JSON text for terminals: control characters, and what UTF-8 can't encode.

    The result is equivalent JSON: `json.loads` gives the same value. A byte that was not UTF-8 is
    written as its surrogate, `\udcff`.
    """
    return _UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _escaped(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"  # a byte that was not UTF-8
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
