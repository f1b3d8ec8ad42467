from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.view.text.hexdump import hexdump


@pytest.mark.parametrize(
    ("data", "masked", "lines"),
    [
        (b"", [], []),
        (b"A\x00\x1b", [], ["0000  41 00 1b" + " " * 42 + "A.."]),
        (
            bytes(range(0x3C, 0x4D)),
            [],
            [
                "0000  3c 3d 3e 3f 40 41 42 43  44 45 46 47 48 49 4a 4b  <=>?@ABCDEFGHIJK",
                "0010  4c" + " " * 48 + "L",
            ],
        ),
        (b"user secret", [(5, 99)], ["0000  75 73 65 72 20 ** ** **  ** ** **" + " " * 17
                                     + "user ******"]),
        (b"abc", [(-5, 1), (2, 2), (5, 9)], ["0000  ** 62 63" + " " * 42 + "*bc"]),
    ],
)  # fmt: skip
def test_hexdump(data: bytes, masked: list[tuple[int, int]], lines: list[str]) -> None:
    assert hexdump(data, masked=masked) == lines


@given(st.binary(max_size=100))
def test_the_bytes_can_be_read_back(data: bytes) -> None:
    lines = hexdump(data)
    assert bytes.fromhex("".join(line[6:54] for line in lines)) == data
    assert all(line.isascii() and line.isprintable() for line in lines)


@given(st.binary(min_size=1, max_size=60), st.integers(0, 60), st.integers(0, 60))
def test_masked_bytes_are_not_shown(data: bytes, start: int, end: int) -> None:
    other = bytes(b ^ 0x55 if start <= at < end else b for at, b in enumerate(data))
    assert hexdump(data, masked=[(start, end)]) == hexdump(other, masked=[(start, end)])
