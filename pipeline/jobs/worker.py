"""A process of Spark's that runs tasks, one after the other."""

from __future__ import annotations

import gc

FREEZE_THRESHOLD = 10_000
"""How many objects that tasks have left behind are looked at again and again."""


def freeze_garbage() -> None:
    """
    Take what earlier tasks have loaded out of the garbage collector's sight; each task begins so.

    Spark has it look through everything after each task, which takes longer than small tasks do:
    what is still there then are modules and loops. Some are loaded only when they are needed, so
    once is not enough.
    """
    if len(gc.get_objects(generation=2)) > FREEZE_THRESHOLD:
        gc.freeze()
