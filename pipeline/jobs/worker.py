"""Housekeeping of Spark's worker processes, which run tasks one after another."""

from __future__ import annotations

import gc

import pyarrow as pa

SYSTEM = "system"
"""Arrow's name for the allocator of the C library."""

FREEZE_THRESHOLD = 10_000
"""More surviving objects than this are frozen."""


def respond(number: int) -> int:
    """Return the input: a task that shows that a worker runs and has the package."""
    return number


def begin_task() -> None:
    """
    Keep time and memory of a task small, at its start.

    Spark collects garbage after each task, which takes longer than small tasks do: modules and
    kernels survive. Objects of earlier tasks are excluded from it; some modules are loaded only
    when needed, so once is not enough. Arrow's own allocator would keep a quarter of a worker's
    memory for later: that of the system gives it back.
    """
    if pa.default_memory_pool().backend_name != SYSTEM:
        pa.set_memory_pool(pa.system_memory_pool())
    if len(gc.get_objects(generation=2)) > FREEZE_THRESHOLD:
        gc.freeze()
