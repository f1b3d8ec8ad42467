from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.view.text.escape import escaped, hexed, quoted, safe_json


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("orders", "orders"),
        ("é 日本 😀", "é 日本 😀"),
        ("\x1b[31mred\x07", r"\x1b[31mred\x07"),
        ("a\nb\tc\r\x00\x7f", r"a\x0ab\x09c\x0d\x00\x7f"),
        ("\x9b31m", r"\u009b31m"),
        ("\udcff\udc80", r"\xff\x80"),
        ("\ud800", r"\ud800"),
        ("abc\u202efdp", r"abc\u202efdp"),
        ("\u2028", r"\u2028"),
        ("\U000e0001", r"\U000e0001"),
    ],
)
def test_control_characters_are_escaped(text: str, expected: str) -> None:
    assert escaped(text) == expected


@given(st.text(st.characters()))
def test_escaped_text_is_printable(text: str) -> None:
    assert escaped(text).isprintable()
    assert quoted(text).isprintable()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", '""'),
        ('say "x"\\', r"""'say "x"\\'"""),
        ("it's", '"it\'s"'),
        ('"it\'s"', r'''"\"it's\""'''),
        ("x" * 201, '"' + "x" * 200 + '"... (201 characters)'),
    ],
)
def test_quoted(text: str, expected: str) -> None:
    assert quoted(text) == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "0 bytes"),
        (b"\x00", "1 byte 00"),
        (b"ab", "2 bytes 6162"),
        (b"\xff" * 1000, f"1,000 bytes {'ff' * 32}..."),
    ],
)
def test_hexed(data: bytes, expected: str) -> None:
    assert hexed(data) == expected


@given(st.text(st.characters()))
def test_safe_json_is_equivalent(text: str) -> None:
    line = safe_json(json.dumps(text, ensure_ascii=False))
    assert json.loads(line) == text
    assert line.encode("utf-8")
    assert not any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 or c in "\u202e\u2066" for c in line)


@pytest.mark.parametrize("size", [0, 1, 32, 33])
def test_hex_of_many_bytes_ends_with_dots(size: int) -> None:
    text = hexed(bytes([7]) * size)
    assert text.startswith(f"{size} byte")
    assert (text.count("07"), text.endswith("...")) == (min(size, 32), size > 32)


def test_characters_beyond_the_basic_plane_have_eight_digits() -> None:
    assert escaped("\uffff\U00010fff") == "\\uffff\\U00010fff"
