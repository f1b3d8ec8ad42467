"""The release of kafkashark of this process: tasks of another one may fail or make other rows."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from socket import gethostname

from dissector.errors import PipelineError


@cache
def release() -> str:
    """Return the installed release; empty if the package is on the path without metadata."""
    try:
        return version("kafkashark")
    except PackageNotFoundError:
        return ""


def require_release(of_driver: str) -> None:
    """
    Compare this worker's release with that of the driver; an unknown one passes.

    Raises:
        PipelineError: They differ.
    """
    ours = release()
    if ours and of_driver and ours != of_driver:
        raise PipelineError(
            f"{gethostname()} has kafkashark {ours}, and the driver {of_driver}: install the same "
            "release on all workers, see docs/pipeline.md"
        )
