"""A job that was ended continues: with the rows of an undisturbed one, and no task made twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dissector.cli import main
from dissector.errors import UsageError
from pipeline.jobs.job import Request, make_tables
from pipeline.jobs.job_state import STATE_FILE, SUCCESS_FILE, JobState
from pipeline.jobs.query import read
from pipeline.split.collection import Collection
from pipeline.storage.parquet_store import FOLDERS
from pipeline.tables.table_builder import TableOptions
from pipeline.tables.table_schemas import SCHEMAS
from tests.pipeline.command_tables import assert_same, tables_of
from tests.pipeline.split_captures import imperfect_packets
from tests.tcp_captures import write
from tests.waiting import child, wait_until

ALL = TableOptions(tables=frozenset(SCHEMAS), folders=("date", "cluster=prod"))


class Killed(BaseException):
    """The end of the driver."""


def _files(folder: Path, count: int = 4) -> list[str]:
    """Write captures with connections across all of them."""
    packets = imperfect_packets(4)
    bounds = [number * len(packets) // count for number in range(count + 1)]
    return [write(folder / f"{a}.pcap", packets[a:b]) for a, b in pairwise(bounds)]


def _killed_at(stage: str) -> Callable[[str], None]:
    def check(begun: str) -> None:
        if begun == stage:
            raise Killed

    return check


def _times(out: Path) -> dict[str, int]:
    """Return the times at which the results of tasks were written, by names of tasks."""
    return {each.stem: each.stat().st_mtime_ns for each in out.glob("_work/results/*.pickle")}


def _assert_tables(spark: SparkSession, out: Path, files: list[str], folder: Path) -> None:
    rows = {
        table: read(spark, str(out), table).select(*schema.names).toArrow().cast(schema)
        for table, schema in SCHEMAS.items()
    }
    assert_same(rows, tables_of(files, folder))
    clusters = read(spark, str(out), "exchanges").select("cluster").distinct().collect()
    assert [each.cluster for each in clusters] == ["prod"]


@pytest.mark.spark
def test_only_missing_tasks_run_again(spark: SparkSession, tmp_path: Path) -> None:
    files, out = _files(tmp_path), tmp_path / "out"
    request = Request(files, str(out), ALL, parts=3)
    with pytest.raises(Killed):
        make_tables(spark, request, _killed_at("looking for captures"))
    assert not out.exists()
    with pytest.raises(Killed):
        make_tables(spark, request, _killed_at("reading headers"))
    assert not (out / STATE_FILE).exists()  # nothing was done yet
    with pytest.raises(Killed):
        make_tables(spark, request, _killed_at("writing tables"))
    assert not (out / SUCCESS_FILE).exists()
    with pytest.raises(UsageError, match="unfinished job: --resume goes on, --overwrite starts"):
        make_tables(spark, request)
    before = _times(out)
    dropped = {"range-000001", "part-000002"}
    assert before.keys() > dropped
    for name in dropped:
        (out / "_work/results" / f"{name}.pickle").unlink()
    for output in out.glob("_work/*/000001.arrow"):
        output.unlink()

    resumed = replace(request, resume=True)
    with pytest.raises(Killed):
        make_tables(spark, resumed, _killed_at("writing tables"))
    after = _times(out)
    assert {name for name, time in after.items() if time != before.get(name)} == dropped
    assert after.keys() == before.keys()
    (out / "exchanges").mkdir()
    (out / "exchanges" / "_half").touch()  # as of a writer that was killed
    made = make_tables(spark, resumed)
    _assert_tables(spark, out, files, tmp_path)
    assert not (out / "_work").exists()
    assert json.loads((out / SUCCESS_FILE).read_text())["rows"] == made.rows
    written = {each: each.stat().st_mtime_ns for each in out.rglob("*.parquet")}
    assert make_tables(spark, resumed) == made  # complete: nothing to do
    assert {each: each.stat().st_mtime_ns for each in out.rglob("*.parquet")} == written


@pytest.mark.spark
def test_a_killed_command_continues(
    without_session: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It leaves nothing in the temporary folder but until the next start."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    files, out = _files(tmp_path, 6), tmp_path / "out"
    words = ["--out", str(out), "--master", "local[1]", "--no-summaries"]
    words += ["--partition-by", "cluster,date", "--cluster", "prod"]
    command = [sys.executable, "-m", "pipeline", *files, *words]
    with child(subprocess.Popen(command, start_new_session=True)) as process:
        wait_until(lambda: _times(out), "the results of a task")
        os.killpg(process.pid, signal.SIGKILL)
    assert not (out / SUCCESS_FILE).exists()
    assert len(list(temporary.glob("kafkashark-spark-*"))) == 1

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *more], capture_output=True, text=True, check=False)

    refused = run()
    assert refused.returncode == 2
    assert refused.stderr.endswith(
        "out has an unfinished job: --resume goes on, --overwrite starts anew\n"
    )
    resumed = run("--resume")
    assert (resumed.returncode, resumed.stderr) == (0, "")
    shutil.copytree(out, tmp_path / "kept")
    anew = run("--overwrite")
    assert (anew.returncode, anew.stderr, anew.stdout) == (0, "", resumed.stdout)
    ours, theirs = (
        {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*.parquet")}
        for folder in (tmp_path / "kept", out)
    )
    assert ours == theirs
    assert all(path.split("/")[1] == "cluster=prod" for path in ours)
    assert list(temporary.iterdir()) == []


def test_another_job_is_not_continued(tmp_path: Path) -> None:
    files, out = _files(tmp_path, 2), str(tmp_path / "out")

    def state(request: Request) -> JobState:
        return JobState.of(Collection.of(request.captures), request, 2)

    request = Request(files, out, ALL)
    assert state(request).continuing(out) is None
    state(request).save(out)
    assert state(request).continuing(out) == state(request)
    assert JobState.of(Collection.of(files), request, 64).continuing(out) == state(request)
    in_dates = replace(ALL, folders=FOLDERS)
    others = {
        "another value of the option tables": replace(request, options=TableOptions()),
        "another value of the option folders": replace(request, options=in_dates),
        "another value of the option format": replace(request, format="delta"),
        "another value of the option summaries": replace(request, summaries=True),
        "parts 0, not 3": replace(request, parts=3),
        f"other captures: {files[1]} is new, missing": replace(request, captures=files[:1]),
    }
    for said, other in others.items():
        with pytest.raises(UsageError, match=f"was begun with {said}"):
            state(other).continuing(out)
    with Path(files[0]).open("ab") as grown:
        grown.write(b"x")
    with pytest.raises(UsageError, match=f"other captures: {files[0]} is new, missing or has"):
        state(request).continuing(out)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["x", "--resume", "--overwrite"], "give either --overwrite or --resume"),
        (["--watch", "x", "--resume"], "--watch goes on by itself, without --resume"),
    ],
)
def test_resume_is_of_one_job(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipeline", "--out", str(tmp_path / "out"), *words]) == 2
    assert capsys.readouterr().err == f"kafkashark: {said}\n"
