"""
A check that tasks write to the driver's folder, not to one of the same name on another machine.

The driver leaves a file with a unique name in the folder, and each process looks for it.
"""

from __future__ import annotations

from functools import cache
from socket import gethostname
from uuid import uuid4

from dissector.errors import CaptureError, PipelineError, ReadError
from pipeline.storage.atomic_files import atomic_write, join_path
from pipeline.storage.filesystems import size_of


def leave_mark(folder: str) -> str:
    """
    Write an empty file into a folder; return its path.

    Raises:
        PipelineError: The file can't be written.
    """
    mark = join_path(folder, f"_driver-{uuid4().hex}")
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
        PipelineError: The file is not there.
    """
    try:
        size_of(mark)
    except ReadError:
        raise
    except CaptureError:
        raise PipelineError(
            f"{out} on {gethostname()} is not the driver's folder: all workers must reach it under "
            "this name, as a mounted folder or a URI"
        ) from None
