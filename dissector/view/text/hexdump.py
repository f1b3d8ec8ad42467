"""Hex dumps as Wireshark prints them: offset, sixteen bytes in hex, the same as text."""

from __future__ import annotations

from collections.abc import Sequence

_WIDTH = 16
_HEX = [f"{byte:02x}" for byte in range(256)]
_TEXT = [chr(byte) if 0x20 <= byte < 0x7F else "." for byte in range(256)]


def hexdump(data: bytes, *, masked: Sequence[tuple[int, int]] = ()) -> list[str]:
    """
    Return the lines of a hex dump.

    Args:
        data: The bytes.
        masked: Ranges [start, end) that are printed as `**`.
    """
    is_masked = masked_bytes(data, masked)
    return [_line(data, is_masked, at) for at in range(0, len(data), _WIDTH)]


def hex_cells(data: bytes, is_masked: bytes | bytearray) -> tuple[list[str], list[str]]:
    """Return each byte in hex and as a character: `**` and `*` for secret ones."""
    row = list(zip(data, is_masked, strict=True))
    return (
        ["**" if secret else _HEX[byte] for byte, secret in row],
        ["*" if secret else _TEXT[byte] for byte, secret in row],
    )


def masked_bytes(data: bytes, masked: Sequence[tuple[int, int]]) -> bytearray:
    """Return 1 for each byte inside of ranges [start, end), and 0 for all others."""
    is_masked = bytearray(len(data))
    for start, end in masked:
        start, end = max(start, 0), min(end, len(data))
        is_masked[start:end] = b"\1" * (end - start)
    return is_masked


def _line(data: bytes, is_masked: bytearray, at: int) -> str:
    pairs, text = hex_cells(data[at : at + _WIDTH], is_masked[at : at + _WIDTH])
    halves = f"{' '.join(pairs[:8]):23}  {' '.join(pairs[8:]):23}"
    return f"{at:04x}  {halves}  {''.join(text)}"
