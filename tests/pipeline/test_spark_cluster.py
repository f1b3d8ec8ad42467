"""A cluster: a killed executor changes no table, and faults of the cluster are one line."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from site import getsitepackages
from socket import gethostname
from threading import Thread
from venv import EnvBuilder

import pyspark
import pytest
from pyspark.sql.functions import count

from dissector.errors import PipelineError, UsageError
from pipeline import register
from pipeline.jobs.java_home import find_java
from pipeline.jobs.job import Request, make_tables
from pipeline.jobs.query import read
from pipeline.jobs.session import FAST_STARTUP_OPTION, open_session, spark_errors
from pipeline.jobs.spark_cluster import WORKER_SECONDS_SETTING
from pipeline.tables.table_builder import TableOptions
from pipeline.tables.table_schemas import SCHEMAS
from tests.pipeline.command_tables import assert_same, tables_of
from tests.pipeline.split_captures import imperfect_packets
from tests.tcp_captures import write
from tests.waiting import child, wait_until

pytestmark = pytest.mark.spark

SPARK = Path(pyspark.__file__).parent
ROOT = Path(__file__).parents[2]
PROC = Path("/proc")


@contextmanager
def started(words: list[str], java: Path, until: str) -> Iterator[tuple[int, str]]:
    """Start a process of Spark; yield the process and its line of readiness."""
    environment = {
        **os.environ,
        "JAVA_HOME": str(java),
        "SPARK_HOME": str(SPARK),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_JAVA_OPTS": FAST_STARTUP_OPTION,
    }
    command = [str(SPARK / "bin/spark-class"), *words]
    with child(
        subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
    ) as process:
        assert process.stderr is not None
        try:
            line = next(line for line in process.stderr if until in line)
            rest = Thread(target=process.stderr.read)
            rest.start()
            yield process.pid, line
        finally:
            process.terminate()
            process.wait()
            rest.join()


@pytest.fixture(scope="module")
def java(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of Java."""
    try:
        return find_java().home_for_spark(tmp_path_factory.mktemp("home") / "java")
    except UsageError as error:
        pytest.skip(str(error))


@contextmanager
def standalone_master(java: Path) -> Iterator[str]:
    """Start a master; yield its address."""
    words = [
        "org.apache.spark.deploy.master.Master",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--webui-port",
        "0",
    ]
    with started(words, java, "Starting Spark master at") as (_, line):
        yield line.split()[-1]


@pytest.fixture(scope="module")
def cluster(
    java: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, list[int]]]:
    """Yield the address of a master, and its workers."""
    if not PROC.is_dir():
        pytest.skip("there is no /proc to find executors in")
    with ExitStack() as stack:
        url = stack.enter_context(standalone_master(java))
        workers = []
        for number in range(2):
            folder = str(tmp_path_factory.mktemp(f"worker-{number}"))
            worker = ["org.apache.spark.deploy.worker.Worker", "-c", "1", "-m", "1g", "-d", folder]
            worker += ["--host", "127.0.0.1", "--webui-port", "0", url]
            pid, _ = stack.enter_context(started(worker, java, "Successfully registered"))
            workers.append(pid)
        yield url, workers


def _packed(folder: Path) -> str:
    """Pack an environment, as in docs/pipeline.md; its editable packages are elsewhere."""
    EnvBuilder(symlinks=True).create(folder / "env")
    (site,) = (folder / "env").glob("lib/python*/site-packages")
    (site / "elsewhere.pth").write_text("\n".join([str(ROOT), *getsitepackages()]))
    archive = folder / "kafkashark.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(folder / "env", arcname="")
    shutil.rmtree(folder / "env")
    return f"{archive}#env"


def _executors(worker: int) -> list[int]:
    found = []
    for each in PROC.glob("[0-9]*/stat"):
        try:
            words = each.read_text().rpartition(")")[2].split()
            command = (each.parent / "cmdline").read_bytes()
        except OSError:  # it has ended
            continue
        if int(words[1]) == worker and b"CoarseGrainedExecutorBackend" in command:
            found.append(int(each.parent.name))
    return found


SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": FAST_STARTUP_OPTION,
    "spark.executor.extraJavaOptions": FAST_STARTUP_OPTION,
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    # Files of a dead executor are not requested repeatedly.
    "spark.shuffle.io.maxRetries": "1",
    "spark.shuffle.io.retryWait": "100ms",
    "spark.locality.wait": "0",
}


def test_a_killed_executor_does_not_change_the_tables(
    without_session: None,
    cluster: tuple[str, list[int]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The workers' own Python lacks the package: they get an environment as an archive."""
    url, workers = cluster
    # Without the setting workers would not find their Python.
    monkeypatch.setenv("PYSPARK_PYTHON", "nowhere")
    packets = imperfect_packets(4)
    third = len(packets) // 3
    parts = [packets[a:b] for a, b in pairwise([0, third, 2 * third, len(packets)])]
    files = [write(tmp_path / f"{n}.pcap", part) for n, part in enumerate(parts)]
    killed: list[list[int]] = []

    def kill(stage: str) -> None:
        """Kill the executor of one worker, while headers are read and before rows are written."""
        if stage in ("dissecting", "writing tables"):
            worker = workers[len(killed)]
            wait_until(lambda: _executors(worker), "an executor")
            killed.append(_executors(worker))
            for executor in killed[-1]:
                os.kill(executor, signal.SIGKILL)

    settings = SETTINGS | {
        "spark.archives": _packed(tmp_path),
        "spark.pyspark.python": "./env/bin/python",
    }
    options = TableOptions(tables=frozenset(SCHEMAS))
    out = str(tmp_path / "out")
    with open_session(url, settings) as spark:
        make_tables(spark, Request(files, out, options, range_bytes=20_000), kill)
        got = {}
        for table, schema in SCHEMAS.items():
            rows = read(spark, out, table).select(*schema.names)
            got[table] = rows.toArrow().cast(schema)
    assert len(killed) == 2
    assert_same(got, tables_of(files, tmp_path))


def test_paths_mean_the_same_on_all_machines(
    without_session: None,
    cluster: tuple[str, list[int]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Workers have other working folders than the driver, here also in place of another machine."""
    monkeypatch.chdir(tmp_path)
    path = write(Path("a.pcap"), imperfect_packets(2))
    elsewhere = "/proc/self/cwd"
    settings = SETTINGS | {"spark.pyspark.python": sys.executable}
    options = TableOptions(tables=frozenset(("exchanges",)))
    with open_session(cluster[0], settings) as spark:
        made = make_tables(spark, Request([path], "out", options))
        assert made.rows["exchanges"] > 0
        assert not made.unread
        rows = read(spark, "out", "exchanges")
        named = rows.groupBy("capture").agg(count("*").alias("n")).collect()
        assert [tuple(each) for each in named] == [("a.pcap", made.rows["exchanges"])]
        register(spark)
        assert spark.read.format("kafka-capture").load(path).count() == made.rows["exchanges"]

        made = make_tables(spark, Request([f"{elsewhere}/a.pcap"], str(tmp_path / "2"), options))
        assert made.rows["exchanges"] == 0
        [(name, reason)] = made.unread.items()
        assert name == f"{elsewhere}/a.pcap"
        assert reason == f"{name}: no such file (on {gethostname()})"
        unseen = spark.read.format("kafka-capture").load(f"{elsewhere}/a.pcap")
        with pytest.raises(PipelineError, match=f"^{re.escape(reason)}"), spark_errors():
            unseen.count()

        with pytest.raises(PipelineError) as error, spark_errors():
            make_tables(spark, Request([path], f"{elsewhere}/3", options))
        assert error.value.what.startswith(f"{elsewhere}/3 on {gethostname()} is not the driver's ")
        assert not list((tmp_path / "3").iterdir())


def test_a_cluster_without_workers_is_one_line(without_session: None, java: Path) -> None:
    settings = SETTINGS | {WORKER_SECONDS_SETTING: "1"}
    with (
        standalone_master(java) as url,
        pytest.raises(PipelineError) as error,
        open_session(url, settings),
    ):
        pass
    assert error.value.what.startswith(f"{url}: no worker took a task within 1 s: one needs a free")
    assert "\n" not in error.value.what
    shutil.rmtree(Path(error.value.log).parent)


def test_executors_that_can_not_start_are_one_line(
    without_session: None, cluster: tuple[str, list[int]]
) -> None:
    settings = SETTINGS | {"spark.executor.extraJavaOptions": "-javaagent:nowhere.jar"}
    with pytest.raises(PipelineError) as error, open_session(cluster[0], settings):
        pass
    assert error.value.what.startswith(f"{cluster[0]}: no worker ")
    assert "\n" not in error.value.what
    shutil.rmtree(Path(error.value.log).parent)


def test_a_master_that_does_not_answer_is_told_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    url = f"spark://127.0.0.1:{port},127.0.0.1:{port}"
    with pytest.raises(PipelineError) as error, open_session(url):
        pass
    refused = f"127.0.0.1:{port}: connection refused"
    assert str(error.value) == f"--master {url}: no master answers ({refused}, {refused})"
