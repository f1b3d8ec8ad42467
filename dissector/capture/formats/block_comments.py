"""
The comments among the options of a packet's block of pcapng: read, and replaced.

Source: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html (options: `opt_comment`)
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from dissector.capture.formats.pcapng import BLOCK_MIN_BYTES, PACKET_HEAD_BYTES

COMMENT, END_OF_OPTIONS = 1, 0
MAX_OPTIONS = 1000
"""Of one block, that many options are read."""
MAX_OPTION_BYTES = 0xFFFF
SECTION_HEAD_BYTES = 24


def options_of(order: str, data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the code and the value of options, up to their end or to one that is cut."""
    at = 0
    for _ in range(MAX_OPTIONS):
        if at + 4 > len(data):
            return
        code, length = struct.unpack_from(f"{order}HH", data, at)
        at += 4
        if code == END_OF_OPTIONS or at + length > len(data):
            return
        yield code, data[at : at + length]
        at += length + -length % 4


def with_comments(order: str, block: bytes, captured: int, comments: Sequence[str]) -> bytes:
    """
    Return the block of a packet with other comments.

    Args:
        order: Byte order of the section, `<` or `>`.
        block: An enhanced or obsolete packet block.
        captured: Its bytes of the packet.
        comments: All its new comments.
    """
    end = PACKET_HEAD_BYTES + captured + -captured % 4
    given = [(COMMENT, text.encode("utf-8", "surrogateescape")) for text in comments]
    others = [each for each in options_of(order, block[end:-4]) if each[0] != COMMENT]
    options = b"".join(_option(order, *each) for each in (*given, *others))
    if options:
        options += _option(order, END_OF_OPTIONS, b"")
    kind = int(struct.unpack_from(f"{order}I", block)[0])
    return block_of(order, kind, block[8:end] + options)


def with_section_comment(order: str, block: bytes, comment: str) -> bytes:
    """
    Return the header of a section with one more comment.

    Args:
        order: Byte order of the section, `<` or `>`.
        block: The block.
        comment: The comment; one that the section has already, and an empty one, change nothing.
    """
    text = comment.encode("utf-8", "surrogateescape")[:MAX_OPTION_BYTES]
    before = list(options_of(order, block[SECTION_HEAD_BYTES:-4]))
    if not comment or (COMMENT, text) in before:
        return block
    options = b"".join(_option(order, *each) for each in ((COMMENT, text), *before))
    end = _option(order, END_OF_OPTIONS, b"")
    kind = int(struct.unpack_from(f"{order}I", block)[0])
    return block_of(order, kind, block[8:SECTION_HEAD_BYTES] + options + end)


def block_of(order: str, kind: int, body: bytes) -> bytes:
    """Return a block with its padding."""
    length = BLOCK_MIN_BYTES + len(body) + -len(body) % 4
    size = struct.pack(f"{order}I", length)
    return struct.pack(f"{order}I", kind) + size + body + bytes(-len(body) % 4) + size


def _option(order: str, code: int, value: bytes) -> bytes:
    value = value[:MAX_OPTION_BYTES]
    return struct.pack(f"{order}HH", code, len(value)) + value + bytes(-len(value) % 4)
