"""A process of Spark's that runs tasks, one after the other."""

from __future__ import annotations

import gc
from functools import cache


@cache
def settle() -> None:
    """
    Take what is loaded out of the garbage collector's sight; once in a process.

    Spark has it look through everything after each task, which takes longer than small tasks do.
    """
    gc.collect()
    gc.freeze()
