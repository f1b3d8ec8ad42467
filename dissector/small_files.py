"""Small files that a user names: keys, secrets, lists. An endless one must not take all memory."""

from __future__ import annotations

from pathlib import Path

from dissector.errors import UsageError

MAX_FILE_BYTES = 16 << 20


def read_small_file(file: str | Path, what: str = "", max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """
    Read a whole file, also a pipe or a device.

    Args:
        file: The file.
        what: What it holds, for messages: `the key `.
        max_bytes: More are not read.

    Raises:
        UsageError: It can't be read, or is larger.
    """
    try:
        with Path(file).open("rb") as opened:
            content = opened.read(max_bytes + 1)
    except OSError as error:
        raise UsageError(f"{file}: {what}cannot be read ({error.strerror or error})") from None
    if len(content) > max_bytes:
        raise UsageError(f"{file}: {what}cannot be read (more than {max_bytes:,} bytes)")
    return content


def read_small_text(file: str | Path, what: str = "") -> str:
    """Read a file in UTF-8, with a byte order mark or without; see `read_small_file`."""
    try:
        return read_small_file(file, what).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: {what}is not text (byte {error.start:,})") from None
