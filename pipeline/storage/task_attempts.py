"""
Attempts of Spark for a failing task.

Unreadable bytes may be readable when the task is retried. Only the last attempt reports it as a
problem, so that a job does not fail because of one file.
"""

from __future__ import annotations

import sys

MAX_ATTEMPTS = 4
"""The default of a cluster."""

MAX_ATTEMPTS_SETTING = "spark.kafkashark.tries"
"""The setting with the limit of attempts: Spark passes the settings of the session to them."""


def will_be_retried() -> bool:
    """Return whether this is a task that Spark retries if it fails."""
    # Don't import pyspark, which is slow: under Spark it is already loaded.
    spark = sys.modules.get("pyspark")
    context = None if spark is None else spark.TaskContext.get()
    if context is None:
        return False
    attempts = int(context.getLocalProperty(MAX_ATTEMPTS_SETTING) or 1)
    return bool(context.attemptNumber() + 1 < attempts)
