"""Whether a cluster can run a job: its master answers, and a worker takes a task in time."""

from __future__ import annotations

import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext

from dissector.errors import PipelineError, UsageError
from pipeline.jobs.worker import respond

WORKER_SECONDS_SETTING = "spark.kafkashark.workerSeconds"
"""The setting with the longest wait for a worker, in seconds; 0: no limit."""

WORKER_SECONDS = 60

CONNECT_SECONDS = 5

STANDALONE = "spark://"

_GROUP = "kafkashark-worker"


def require_master(master: str) -> None:
    """
    Connect to a standalone master: Spark tries for a minute, and does not name the failure.

    Args:
        master: Spark master; others than `spark://HOST:PORT[,HOST:PORT]` pass.

    Raises:
        PipelineError: None of the addresses answers.
    """
    if not master.startswith(STANDALONE):
        return
    failures = []
    for address in master.removeprefix(STANDALONE).split(","):
        host, _, port = address.rpartition(":")
        if not (host and port.isdecimal()):
            return  # Spark explains the form
        try:
            with socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS):
                return
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            failures.append(f"{address}: {reason.lower()}")
    raise PipelineError(f"--master {master}: no master answers ({', '.join(failures)})")


def require_worker(context: SparkContext) -> None:
    """
    Wait until a worker has run a task.

    Spark waits forever for a worker with enough cores and memory, and where executors fail to start
    it stops the session without a reason.

    Raises:
        UsageError: The setting of the time is not a number.
        PipelineError: No worker has run a task in time, or the cluster has given up.
    """
    seconds = _worker_seconds(context)
    memory = context.getConf().get("spark.executor.memory", "1g")
    with ThreadPoolExecutor(1) as pool:
        task = pool.submit(_run_task, context)
        try:
            task.result(seconds or None)
        except TimeoutError:
            _cancel(context)
            raise PipelineError(
                f"{context.master}: no worker took a task within {seconds:g} s: one needs a free "
                f"core, {memory} of free memory (--conf spark.executor.memory) and a way to the "
                f"driver (spark.driver.host); --conf {WORKER_SECONDS_SETTING}=N waits longer"
            ) from None
        except Py4JError:
            if not _is_stopped(context):
                raise  # the task itself failed
            raise PipelineError(
                f"{context.master}: no worker could start an executor, and the cluster gave up"
            ) from None
        except BaseException:
            _cancel(context)
            raise


def _worker_seconds(context: SparkContext) -> float:
    text = context.getConf().get(WORKER_SECONDS_SETTING, str(WORKER_SECONDS))
    if not str(text).isdecimal():
        raise UsageError(f"{WORKER_SECONDS_SETTING} takes a number of seconds, not {text!r}")
    return float(str(text))


def _run_task(context: SparkContext) -> None:
    context.setJobGroup(_GROUP, "waiting for a worker", interruptOnCancel=True)
    context.parallelize([0], 1).map(respond).collect()


def _cancel(context: SparkContext) -> None:
    with suppress(Py4JError):  # the cluster has ended the session
        context.cancelJobGroup(_GROUP)


def _is_stopped(context: SparkContext) -> bool:
    java: Any = context._jsc
    try:
        return java is None or bool(java.sc().isStopped())
    except Py4JError:  # Java has ended
        return True
