"""Results of tasks, kept beside their outputs: a job that continues does not run these again."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from dissector.errors import CaptureError, ReadError
from pipeline.storage.atomic_files import atomic_write, join_path
from pipeline.storage.filesystems import open_file

Result = TypeVar("Result")

FOLDER = "results"


def kept(
    work: str, name: str, inputs: Iterable[Any], run: Callable[[Iterable[Any]], Iterable[Result]]
) -> Iterator[Result]:
    """
    Yield the results of a task; those of its earlier run if that was complete.

    The results are written after all outputs of the task. As in a checkpoint of Spark they are
    pickled: nobody else may write into the folder.

    Args:
        work: The folder for outputs of tasks.
        name: The task's name.
        inputs: The task's inputs.
        run: Runs the task; its results are few and small.
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
        results: list[Any] = pickle.loads(file.read())
        return results
