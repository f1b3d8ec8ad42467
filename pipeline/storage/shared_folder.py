"""
A check that tasks write to the driver's folder, not to one of the same name on another machine.

The driver leaves a file with a unique name in the folder, and each process looks for it. The name
has the driver's release, which each process compares with its own.
"""

from __future__ import annotations

from functools import cache
from socket import gethostname
from uuid import uuid4

from dissector.errors import CaptureError, PipelineError, ReadError
from pipeline.storage.atomic_files import atomic_write, join_path
from pipeline.storage.filesystems import size_of
from pipeline.storage.installed_release import release, require_release

_MARK = "_driver-"


def leave_mark(folder: str) -> str:
    """
    Write an empty file into a folder; return its path.

    Raises:
        PipelineError: The file can't be written.
    """
    mark = join_path(folder, f"{_MARK}{uuid4().hex}-{release()}")
    with atomic_write(mark):
        pass
    return mark


@cache
def require_mark(mark: str, out: str) -> None:
    """
    Look for the driver's file, once per process.

    Args:
        mark: The file.
        out: The folder of the tables, for the message.

    Raises:
        ReadError: The file system does not answer now.
        PipelineError: The file is not there, or this process has another release of kafkashark.
    """
    _, is_mark, words = mark.rpartition(_MARK)
    if is_mark:
        require_release(words.partition("-")[2])
    try:
        size_of(mark)
    except ReadError:
        raise
    except CaptureError:
        raise PipelineError(
            f"{out} on {gethostname()} is not the driver's folder: all workers must reach it under "
            "this name, as a mounted folder or a URI"
        ) from None
