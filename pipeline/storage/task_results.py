"""Results of tasks, kept beside their outputs: a job that continues does not run these again."""

from __future__ import annotations

import os
import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from dissector.errors import CaptureError, PipelineError, ReadError
from pipeline.storage.atomic_files import atomic_write, join_path
from pipeline.storage.filesystems import is_uri, open_file

Result = TypeVar("Result")

FOLDER = "results"


def kept(
    work: str, name: str, inputs: Iterable[Any], run: Callable[[Iterable[Any]], Iterable[Result]]
) -> Iterator[Result]:
    """
    Yield the results of a task; those of its earlier run if that was complete.

    The results are written after all outputs of the task. As in a checkpoint of Spark they are
    pickled, so results of another user are refused: who writes them runs code here.

    Args:
        work: The folder for outputs of tasks.
        name: The task's name.
        inputs: The task's inputs.
        run: Runs the task; its results are few and small.

    Raises:
        PipelineError: Local results belong to another user.
    """
    path = join_path(work, FOLDER, f"{name}.pickle")
    results = _earlier(path)
    if results is None:
        results = list(run(inputs))
        with atomic_write(path, private=True) as file:
            pickle.dump(results, file)
    else:
        deque(inputs, maxlen=0)  # Spark ends a worker that leaves inputs unread
    yield from results


def _earlier(path: str) -> list[Any] | None:
    """Return stored results; None without any."""
    try:
        file = open_file(path)
    except ReadError:
        raise
    except CaptureError:
        return None
    with file:
        if not is_uri(path) and os.fstat(file.fileno()).st_uid != os.geteuid():
            raise PipelineError(f"{path} belongs to another user; --overwrite starts anew")
        results: list[Any] = pickle.loads(file.read())
        return results
