"""
How often Spark tries a task.

What can't be read now may be read when a task is tried again. Only in the last try it is told as a
problem, so that a job does not end for the sake of one file.
"""

from __future__ import annotations

import sys

MAX_ATTEMPTS = 4
"""As often as a cluster tries by default."""

MAX_ATTEMPTS_SETTING = "spark.kafkashark.tries"
"""Tells tasks how often they are tried: Spark gives them the settings of the session."""


def will_be_retried() -> bool:
    """Tell whether this is a task that Spark tries again where it fails."""
    # Without Spark nobody has loaded it, and it takes its time.
    spark = sys.modules.get("pyspark")
    context = None if spark is None else spark.TaskContext.get()
    if context is None:
        return False
    tries = int(context.getLocalProperty(MAX_ATTEMPTS_SETTING) or 1)
    return bool(context.attemptNumber() + 1 < tries)
