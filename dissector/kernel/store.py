"""
The cache of compiled kernels, in a folder of the user.

Its files are executed as they are. So the folder and its files must belong to the user, and nobody
else may write to them; a damaged file counts as absent.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

LOCK = "lock"
"""The lock file; each of its bytes stands for the names of kernels that hash to it."""

_MAGIC = b"kafkashark kernel\n"

_HASH_BYTES = 32


def cache_folder() -> Path:
    """Return the folder of compiled kernels; environment variables can move it."""
    own = os.environ.get("KAFKASHARK_CACHE", "")
    if own:
        return Path(own) / "kernels"
    shared = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(shared) if shared.startswith("/") else Path("~/.cache").expanduser()
    return root / "kafkashark" / "kernels"


def read(name: str) -> bytes | None:
    """Return a cached file's content; None if the file is absent, damaged or not the user's."""
    try:
        if not _is_private(cache_folder().stat()):
            return None
        with (cache_folder() / name).open("rb") as file:
            if not _is_private(os.fstat(file.fileno())):
                return None
            stored = file.read()
    except (OSError, RuntimeError):  # RuntimeError: no home directory
        return None
    content = stored[len(_MAGIC) + _HASH_BYTES :]
    return content if stored == _with_checksum(content) else None


def save(name: str, content: bytes) -> bool:
    """Write a file to the cache, wholly or not at all; return whether that succeeded."""
    try:
        if not _make_folder():
            return False
        with tempfile.NamedTemporaryFile(dir=cache_folder(), delete=False) as file:
            temporary = Path(file.name)
            try:
                file.write(_with_checksum(content))
                file.close()
                temporary.replace(cache_folder() / name)
            except OSError:
                temporary.unlink()
                raise
    except (OSError, RuntimeError):
        return False
    return True


@contextmanager
def compile_lock(name: str) -> Iterator[None]:
    """
    Hold the lock of a name, so that no other process compiles the same kernel.

    Where files can't be locked nothing waits.
    """
    with ExitStack() as stack:
        with suppress(ImportError, OSError, RuntimeError):
            import fcntl  # not on Windows

            if _make_folder():
                file = stack.enter_context((cache_folder() / LOCK).open("ab"))
                fcntl.lockf(file, fcntl.LOCK_EX, 1, zlib.crc32(name.encode()))
        yield


def _make_folder() -> bool:
    """Create the folder if it is absent; return whether it is the user's alone."""
    cache_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    return _is_private(cache_folder().stat())


def _with_checksum(content: bytes) -> bytes:
    return _MAGIC + hashlib.sha256(content).digest() + content


def _is_private(status: os.stat_result) -> bool:
    """Return whether a folder or file belongs to the user and nobody else may write to it."""
    if os.name != "posix":
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
