"""
The temporary folder of a session: Java's files, spilled data, the log.

A session locks its folder as long as its process lives. So a folder that can be locked belongs to a
process that is dead, also if processes are numbered otherwise here, as in a container.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dissector.errors import PipelineError

PREFIX = "kafkashark-spark-"

LOG = "spark.log"

_LOCK = "lock"


@contextmanager
def session_folder() -> Iterator[Path]:
    """
    Make a folder for a `with`, after removing those that killed sessions have left.

    If the work fails the log stays, as the error names it.
    """
    remove_stale_folders()
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
    with (folder / _LOCK).open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield folder
        except PipelineError:
            _remove_except_log(folder)
            raise
        except BaseException:
            shutil.rmtree(folder)
            raise
        shutil.rmtree(folder)


def _remove_except_log(folder: Path) -> None:
    for each in folder.iterdir():
        if each.is_dir() and not each.is_symlink():
            shutil.rmtree(each, ignore_errors=True)
        elif each.name != LOG:
            each.unlink()


def remove_stale_folders() -> None:
    """
    Remove the folders of this user's sessions that were killed.

    Others may write to the temporary folder too: links, folders of other users, and folders without
    a lock are left alone.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            _remove_if_dead(folder)


def _remove_if_dead(folder: Path) -> None:
    """Remove the folder of a dead session of this user; the opened folder can't become a link."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(opened).st_uid != os.geteuid():
            return
        lock = os.open(_LOCK, os.O_RDWR | os.O_NOFOLLOW, dir_fd=opened)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove_inner(opened)
        finally:
            os.close(lock)
        folder.rmdir()
    finally:
        os.close(opened)


def _remove_inner(opened: int) -> None:
    """Remove all that is in an opened folder; the lock last, so that a killed removal goes on."""
    inner = sorted(os.scandir(opened), key=lambda each: each.name == _LOCK)
    for each in inner:
        if each.is_dir(follow_symlinks=False):
            shutil.rmtree(each.name, ignore_errors=True, dir_fd=opened)
        else:
            os.unlink(each.name, dir_fd=opened)
