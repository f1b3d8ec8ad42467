"""
A Spark session that finds Java, prints nothing to the screen, and cleans up.

Under `spark-submit` Java is running already: then only settings that the pipeline needs are set.
"""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from dissector.errors import PipelineError, UsageError
from pipeline.jobs.java_home import find_java
from pipeline.jobs.session_folder import LOG, session_folder
from pipeline.jobs.spark_cluster import require_master, require_worker
from pipeline.storage.filesystems import is_uri
from pipeline.storage.task_attempts import MAX_ATTEMPTS, MAX_ATTEMPTS_SETTING

APP_NAME = "kafkashark pipeline"

LOCAL = "local[*]"

LOCAL_MASTER = re.compile(r"local(?:\[(?P<cores>[^],]+)(?:,\s*(?P<tries>\d+))?\])?$")
"""A master on this machine, and its attempts per task, one by default."""

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    # A partition's value is text, even if an API is known only by its number.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
"""Settings that the pipeline needs in every session."""

LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "8",
}
"""Settings if all of Spark runs in this process and its Java."""

FAST_STARTUP_OPTION = "-XX:TieredStopAtLevel=1"
"""Only Java's fast compiler: Java merely schedules, and took half as long again without this."""

IRRELEVANT_LINE = re.compile(r"\s*(WARNING: |[0-9:]+ WARN |at |\.\.\. )")
"""Beginnings of lines that do not name the failure."""

JAVA_ERROR_PREFIX = re.compile(
    r'^(Exception in thread "main" [\w.]+|(java\.lang|org\.apache\.spark)\.[\w.$]+): '
)
"""The prefix of the message of a Java error."""

CHAINING_LINES = ("The above exception was", "During handling of")
"""Beginnings of the lines between an error and the one it led to."""

INTERRUPTED = "KeyboardInterrupt while sending command."
"""What Py4J logs with a traceback at a Ctrl-C, which is no error."""

TRACEBACK = "Traceback"
"""Part of the line before a Python traceback."""

HINTS = {
    "ModuleNotFoundError": "workers need the package too, see docs/pipeline.md",
    "PYTHON_VERSION_MISMATCH": "--conf spark.pyspark.python names it, see docs/pipeline.md",
}
"""What to do about errors of workers, by words in them."""

LOGGING = """\
rootLogger.level = warn
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
"""


@contextmanager
def open_session(
    master: str | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[SparkSession]:
    """
    Open a session for a `with`, and stop it at the end.

    Java's output is written to a file; if the work fails the file stays, and the error names it.

    Args:
        master: Spark master; by default that of `spark-submit`, else all local cores.
        settings: Further settings of Spark; they override ours.

    Raises:
        UsageError: No suitable Java exists, or a setting is invalid.
        PipelineError: Spark does not start, no worker takes a task (see `spark_cluster`), or the
            work fails.
    """
    overrides = dict(settings or {})
    if _is_submitted():
        with spark_errors(), _session(_conf(master, overrides)) as spark:
            spark.sparkContext.setLogLevel("ERROR")
            _require_cluster(spark)
            yield spark
        return
    conf = _conf(master or LOCAL, overrides)
    require_master(conf.get("spark.master", "") or "")
    with session_folder() as folder:
        if conf.get("spark.master", "").startswith("local"):
            # Spark's spill files hold bytes of captures.
            conf.setIfMissing("spark.local.dir", str(folder / "spill"))
        log = folder / LOG
        with (
            spark_errors(log),
            _java_gateway(conf, folder) as java,
            spark_errors(log),
            _session(conf, java) as spark,
        ):
            _require_cluster(spark)
            yield spark


def _require_cluster(spark: SparkSession) -> None:
    if not str(spark.sparkContext.master).startswith("local"):
        require_worker(spark.sparkContext)


def has_reader(spark: SparkSession, path: str) -> bool:
    """Return whether Spark itself can read a path or URI; without access to the file system."""
    if not is_uri(path):
        return True
    jvm: Any = spark._jvm
    java: Any = spark.sparkContext._jsc
    try:
        scheme = urlsplit(path).scheme
        jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, java.hadoopConfiguration())
    except Py4JJavaError:
        return False
    return True


@contextmanager
def spark_errors(log: Path | None = None) -> Iterator[None]:
    """
    Convert all errors of Spark into a PipelineError of one line.

    Args:
        log: The file with details.
    """
    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = root_cause_text(error)
        if "JAVA_GATEWAY_EXITED" in text and log is not None:
            text = log.read_text(errors="replace")
        raise PipelineError(error_summary(text), "" if log is None else str(log)) from None
    except PipelineError as error:
        if error.log or log is None:
            raise
        raise PipelineError(error.what, str(log)) from None


def root_cause_text(error: Any) -> str:
    """Return the text of an error; of a Java error, its root cause."""
    text = str(error)
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if java is None or TRACEBACK in text:
        return text
    try:
        while java.getCause() is not None:
            java = java.getCause()
        return str(java.toString())
    except Py4JError:  # Java has ended
        return text


def error_summary(text: str) -> str:
    """Return the most informative line of a Spark error."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    traces = [at for at, line in enumerate(lines) if TRACEBACK in line]
    if not traces:
        lines = [line for line in lines if not IRRELEVANT_LINE.match(line)]
        line = lines[0] if lines else "Spark failed without giving a reason"
        return JAVA_ERROR_PREFIX.sub("", line.strip())
    # Of chained errors the last one is the most meaningful.
    first_trace = max(
        (at for at in traces if lines[at - 1].startswith(CHAINING_LINES)), default=traces[0]
    )
    # A line before a traceback only reports the failure of another process.
    introductions = {*traces, *(at - 1 for at in traces)}
    raised = (
        line
        for at, line in enumerate(lines)
        if at > first_trace and at not in introductions and re.match(r"[\w.]+(: |$)", line)
    )
    summary = re.sub(r"^dissector\.errors\.\w+: ", "", next(raised, lines[-1].strip()))
    hints = (hint for words, hint in HINTS.items() if words in summary)
    return "; ".join((summary, *hints))


def _is_submitted() -> bool:
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _conf(master: str | None, settings: Mapping[str, str]) -> SparkConf:
    is_local = master is not None and master.startswith("local")
    ours = SETTINGS | (LOCAL_SETTINGS if is_local else {})
    conf = SparkConf().setAppName(APP_NAME).setAll([*{**ours, **settings}.items()])
    attempts = conf.get("spark.task.maxFailures", None) or str(MAX_ATTEMPTS)
    if not attempts.isdecimal():
        raise UsageError(f"spark.task.maxFailures takes a number, not {attempts!r}")
    master = master or conf.get("spark.master", None)
    match = LOCAL_MASTER.match(master or "")
    if match is not None:
        attempts = match["tries"] or attempts
        master = f"local[{match['cores'] or 1},{attempts}]"
    conf.set(MAX_ATTEMPTS_SETTING, attempts)
    return conf if master is None else conf.setMaster(master)


@contextmanager
def _java_gateway(conf: SparkConf, folder: Path) -> Iterator[Any]:
    """Start Spark's Java, with its output in a file of the folder, and end it."""
    home = find_java().home_for_spark(folder / "java")
    logging = folder / "log4j2.properties"
    logging.write_text(LOGGING)
    is_local = conf.get("spark.master", "").startswith("local")
    option = "spark.driver.extraJavaOptions"
    user_options = conf.get(option) or ""
    temporary = folder / "tmp"
    temporary.mkdir()
    java_options = (
        f'"-Djava.io.tmpdir={temporary}"',
        f"-Dlog4j2.configurationFile={logging.as_uri()}",
        FAST_STARTUP_OPTION if is_local else "",
        user_options,
    )
    conf.set(option, " ".join(filter(None, java_options)))
    # Otherwise workers would import modules of the user from the current folder in place of ours.
    environment = {"JAVA_HOME": str(home), "PYTHONSAFEPATH": "1"}
    # Outside spark-submit the setting has no effect, so set the variable.
    python = conf.get("spark.pyspark.python", sys.executable if is_local else None)
    if python:
        environment["PYSPARK_PYTHON"] = python
    with (folder / LOG).open("wb") as log, _environment(environment):
        gateway = launch_gateway(conf, {"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]
        try:
            yield gateway
        finally:
            gateway.shutdown()
            gateway.proc.stdin.close()
            gateway.proc.wait()
            SparkContext._gateway = SparkContext._jvm = None


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a `with`."""
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _session(conf: SparkConf, java: Any = None) -> Iterator[SparkSession]:
    with _own_handler():
        if java is not None:
            SparkContext(conf=conf, gateway=java)  # the builder uses the existing context
        spark = SparkSession.builder.config(conf=conf).getOrCreate()
    log = logging.getLogger()
    log.addFilter(_is_error)
    try:
        yield spark
    finally:
        spark.stop()
        log.removeFilter(_is_error)


@contextmanager
def _own_handler() -> Iterator[None]:
    """
    Keep the handler of Ctrl-C, which a Spark context replaces.

    Its own one asks Java to cancel all jobs, on the connection that waits for Java's answer. Our
    sessions end with the command, and their jobs with them.
    """
    before = signal.getsignal(signal.SIGINT)
    yield
    if signal.getsignal(signal.SIGINT) is not before:  # so this is the main thread
        signal.signal(signal.SIGINT, before)


def _is_error(record: logging.LogRecord) -> bool:
    return record.getMessage() != INTERRUPTED
