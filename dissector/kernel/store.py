"""
Compiled kernels on disk, in a folder of the user's own.

What lies there is run as it is. So the folder and its files must belong to the user, and nobody
else may write to them; and a file that is damaged counts as none.
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
"""The file whose bytes stand for names of which somebody makes what is to be kept."""

_MARK = b"kafkashark kernel\n"

_HASH_BYTES = 32


def cache_folder() -> Path:
    """Return where compiled kernels are kept: the environment can move it."""
    own = os.environ.get("KAFKASHARK_CACHE", "")
    if own:
        return Path(own) / "kernels"
    shared = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(shared) if shared.startswith("/") else Path("~/.cache").expanduser()
    return root / "kafkashark" / "kernels"


def read(name: str) -> bytes | None:
    """Return what was kept under a name; None if it is not there, damaged, or not ours."""
    try:
        if not _is_ours(cache_folder().stat()):
            return None
        with (cache_folder() / name).open("rb") as file:
            if not _is_ours(os.fstat(file.fileno())):
                return None
            kept = file.read()
    except (OSError, RuntimeError):  # the latter where there is no home
        return None
    content = kept[len(_MARK) + _HASH_BYTES :]
    return content if kept == _sealed(content) else None


def save(name: str, content: bytes) -> bool:
    """Keep something under a name, all of it or nothing; return whether that was possible."""
    try:
        if not _make_folder():
            return False
        with tempfile.NamedTemporaryFile(dir=cache_folder(), delete=False) as file:
            written = Path(file.name)
            try:
                file.write(_sealed(content))
                file.close()
                written.replace(cache_folder() / name)
            except OSError:
                written.unlink()
                raise
    except (OSError, RuntimeError):
        return False
    return True


@contextmanager
def compile_lock(name: str) -> Iterator[None]:
    """
    Wait until no other process makes what is to be kept under a name, and let others wait.

    Where files can't be locked nobody waits.
    """
    with ExitStack() as stack:
        with suppress(ImportError, OSError, RuntimeError):
            import fcntl  # not on Windows

            if _make_folder():
                file = stack.enter_context((cache_folder() / LOCK).open("ab"))
                fcntl.lockf(file, fcntl.LOCK_EX, 1, zlib.crc32(name.encode()))
        yield


def _make_folder() -> bool:
    """Make the folder if there is none; return whether it is ours."""
    cache_folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    return _is_ours(cache_folder().stat())


def _sealed(content: bytes) -> bytes:
    return _MARK + hashlib.sha256(content).digest() + content


def _is_ours(status: os.stat_result) -> bool:
    """Tell whether a folder or file is the user's, and no one else's to write to."""
    if os.name != "posix":
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
