"""Housekeeping of Spark's worker processes, which run tasks one after another."""

from __future__ import annotations

import gc

FREEZE_THRESHOLD = 10_000
"""More surviving objects than this are frozen."""


def respond(number: int) -> int:
    """Return the input: a task that shows that a worker runs and has the package."""
    return number


def freeze_garbage() -> None:
    """
    Exclude objects of earlier tasks from garbage collection, at the start of each task.

    Spark collects garbage after each task, which takes longer than small tasks do: modules and
    kernels survive. Some are loaded only when needed, so once is not enough.
    """
    if len(gc.get_objects(generation=2)) > FREEZE_THRESHOLD:
        gc.freeze()
