"""
A Spark session that finds its Java, says nothing on the screen, and cleans up behind itself.

Under `spark-submit` Java is there already: then nothing is chosen but what the pipeline needs.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
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
from pipeline.storage.filesystems import is_uri
from pipeline.storage.task_attempts import MAX_ATTEMPTS, MAX_ATTEMPTS_SETTING

NAME = "kafkashark pipeline"

LOCAL = "local[*]"

LOCAL_TRIES = re.compile(r"local(?:\[(?P<cores>[^],]+)(?:,\s*(?P<tries>\d+))?\])?$")
"""How a master on this machine is named, and how often a task is tried there, which is once."""

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.python.filterPushdown.enabled": "true",
    # A folder of a partition holds a word, also where an API is known by its number alone.
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
"""What the pipeline needs of every session."""

LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "8",
}
"""Where all of Spark runs in this process and its Java."""

FAST_STARTUP_OPTION = "-XX:TieredStopAtLevel=1"
"""Java compiles at once, and not well: it only shares out work, and took half as long again."""

PREFIX = "kafkashark-spark-"

LOG = "spark.log"

NO_FAULT = re.compile(r"\s*(WARNING: |[0-9:]+ WARN |at |\.\.\. )")
"""How lines begin that do not say what failed."""

JAVAS_OWN = re.compile(
    r'^(Exception in thread "main" [\w.]+|(java\.lang|org\.apache\.spark)\.[\w.$]+): '
)
"""What stands before what an error of Java says."""

LED_TO = ("The above exception was", "During handling of")
"""How a line begins that stands between an error and the one that it led to."""

TRACE = "Traceback"
"""What is in the line before the lines of a trace of Python's."""

MISSING_PACKAGE_HINT = "; workers need the package too, see docs/pipeline.md"

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
    Open a session for a `with`, and stop it at its end.

    What Java says goes to a file; where the work fails the file stays, and the error names it.

    Args:
        master: Where Spark runs; by default where `spark-submit` says, else on all cores here.
        settings: Further settings of Spark; they win over ours.

    Raises:
        UsageError: There is no Java that fits, or a setting can't be so.
        PipelineError: Spark does not start, or gives the work up.
    """
    wanted = dict(settings or {})
    if _is_submitted():
        with spark_errors(), _opened(_conf(master, wanted)) as spark:
            spark.sparkContext.setLogLevel("ERROR")
            yield spark
        return
    conf = _conf(master or LOCAL, wanted)
    remove_stale_folders()
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
    if conf.get("spark.master", "").startswith("local"):
        # What Spark writes aside holds bytes of captures.
        conf.setIfMissing("spark.local.dir", str(folder / "spill"))
    log = folder / LOG
    try:
        with (
            spark_errors(log),
            _java(conf, folder) as java,
            spark_errors(log),
            _opened(conf, java) as spark,
        ):
            yield spark
    except PipelineError:
        raise
    except BaseException:
        shutil.rmtree(folder)
        raise
    shutil.rmtree(folder)


def remove_stale_folders() -> None:
    """
    Remove what sessions left that were killed: their folders, but for the logs.

    The name of a folder has the number of its process.
    """
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
        process = folder.name.removeprefix(PREFIX).partition("-")[0]
        if process.isdecimal() and not _is_alive(int(process)):
            for inner in folder.iterdir():
                if inner.is_dir():
                    shutil.rmtree(inner, ignore_errors=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def has_reader(spark: SparkSession, path: str) -> bool:
    """Tell whether Spark itself can read where a path or URI lies; nobody is asked for that."""
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
    Turn whatever Spark raises into an error of ours, in one line.

    Args:
        log: The file that says more.
    """
    try:
        yield
    except (PySparkException, Py4JError) as error:
        text = _origin_of(error)
        if "JAVA_GATEWAY_EXITED" in text and log is not None:
            text = log.read_text(errors="replace")
        raise PipelineError(error_summary(text), "" if log is None else str(log)) from None


def _origin_of(error: Any) -> str:
    """Return what an error says; of Java's, what the one says that led to the others."""
    text = str(error)
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if java is None or TRACE in text:
        return text
    try:
        while java.getCause() is not None:
            java = java.getCause()
        return str(java.toString())
    except Py4JError:  # Java has ended
        return text


def error_summary(text: str) -> str:
    """Return the one line of an error of Spark that says what is wrong."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    traces = [at for at, line in enumerate(lines) if TRACE in line]
    if not traces:
        lines = [line for line in lines if not NO_FAULT.match(line)]
        line = lines[0] if lines else "Spark gave up, and does not say why"
        return JAVAS_OWN.sub("", line.strip())
    # Of errors that led to one another the last one says what it means.
    begin = max((at for at in traces if lines[at - 1].startswith(LED_TO)), default=traces[0])
    # What a trace follows only says that another process failed.
    leading = {*traces, *(at - 1 for at in traces)}
    raised = (
        line
        for at, line in enumerate(lines)
        if at > begin and at not in leading and re.match(r"[\w.]+(: |$)", line)
    )
    said = re.sub(r"^dissector\.errors\.\w+: ", "", next(raised, lines[-1].strip()))
    return said + (MISSING_PACKAGE_HINT if said.startswith("ModuleNotFoundError") else "")


def _is_submitted() -> bool:
    return "PYSPARK_GATEWAY_PORT" in os.environ


def _conf(master: str | None, settings: Mapping[str, str]) -> SparkConf:
    is_local = master is not None and master.startswith("local")
    ours = SETTINGS | (LOCAL_SETTINGS if is_local else {})
    conf = SparkConf().setAppName(NAME).setAll([*{**ours, **settings}.items()])
    tries = conf.get("spark.task.maxFailures", None) or str(MAX_ATTEMPTS)
    if not tries.isdecimal():
        raise UsageError(f"spark.task.maxFailures takes a number, not {tries!r}")
    master = master or conf.get("spark.master", None)
    match = LOCAL_TRIES.match(master or "")
    if match is not None:
        tries = match["tries"] or tries
        master = f"local[{match['cores'] or 1},{tries}]"
    conf.set(MAX_ATTEMPTS_SETTING, tries)
    return conf if master is None else conf.setMaster(master)


@contextmanager
def _java(conf: SparkConf, folder: Path) -> Iterator[Any]:
    """Start Spark's Java, with its words in a file of the folder, and end it."""
    home = find_java().home_for_spark(folder / "java")
    logging = folder / "log4j2.properties"
    logging.write_text(LOGGING)
    is_local = conf.get("spark.master", "").startswith("local")
    option = "spark.driver.extraJavaOptions"
    given = conf.get(option) or ""
    words = (
        f"-Dlog4j2.configurationFile={logging.as_uri()}",
        FAST_STARTUP_OPTION if is_local else "",
        given,
    )
    conf.set(option, " ".join(filter(None, words)))
    environment = {"JAVA_HOME": str(home)}
    # Only spark-submit takes that of the settings.
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
    """Set variables of the environment for a `with`."""
    before = dict(os.environ)
    os.environ.update(values)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _opened(conf: SparkConf, java: Any = None) -> Iterator[SparkSession]:
    if java is not None:
        SparkContext(conf=conf, gateway=java)  # the builder takes the one that is there
    spark = SparkSession.builder.config(conf=conf).getOrCreate()
    try:
        yield spark
    finally:
        spark.stop()
