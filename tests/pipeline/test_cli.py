"""The command `pipeline`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from dissector.cli import main
from pipeline.cli import FIELDS, MAX_REPORTED, TABLES, report_unread
from pipeline.tables.table_schemas import SCHEMAS
from tests.pipeline.s3_store import BUCKET, bucket

ROOT = Path(__file__).parents[2]
CAPTURES = ROOT / "captures"
DENIED = str(CAPTURES / "kafka4-denied.pcap")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([DENIED], "missing --out DIR"),
        (["--out", "x"], "give either CAPTURE... or --watch DIR"),
        ([DENIED, "--watch", "y", "--out", "x"], "give either CAPTURE... or --watch DIR"),
        ([DENIED, "--out", "x", "--conf", "spark.ui"], "--conf takes K=V, not 'spark.ui'"),
        ([DENIED, "--out", "x", "--tables", "exchanges,frames"], "--tables takes connections, "),
        (
            [DENIED, "--out", "x", "--cluster", "a"],
            "--partition-by date,cluster and --cluster NAME need each other",
        ),
        (
            [DENIED, "--out", "x", "--partition-by", "cluster,date"],
            "--partition-by date,cluster and --cluster NAME need each other",
        ),
        (
            [DENIED, "--out", "x", "--partition-by", "date,cluster", "--cluster", "a/b"],
            "--cluster takes letters, digits, '.', '_' and '-', not 'a/b'",
        ),
        (["--watch", "y", "--out", "x", "--format", "delta"], "--watch writes parquet, not delta"),
        (["--watch", "y", "--out", "x", "--tables", "lags"], "--watch makes no table lags: "),
    ],
)
def test_errors_are_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipeline", *words]) == 2
    stderr = capsys.readouterr().err
    assert stderr.startswith(f"kafkashark: {said}")
    assert stderr.count("\n") == 1


def test_the_error_without_spark_names_the_package(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert main(["pipeline", DENIED, "--out", "x"]) == 2
    said = "pipeline needs an extra: pip install 'kafkashark[spark]' (in a checkout: make env)"
    assert capsys.readouterr().err == f"kafkashark: {said}\n"


def test_help_lists_the_tables() -> None:
    assert set(TABLES.split(",")) == set(SCHEMAS)
    assert all(name.startswith("client_software_") for name in FIELDS.split(","))


def command_in(page: str, heading: str) -> list[str]:
    """Return the arguments of the first `kafkashark pipeline` in a section of a page."""
    text = (ROOT / page).read_text().split(heading)[1].split("\n#")[0]
    found = re.search(r"^\$ kafkashark pipeline (.*)", text, re.MULTILINE)
    assert found is not None
    return found[1].split()


def run(
    words: list[str], folder: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pipeline", *words, "--master", "local[1]"]
    env = {**os.environ, **(environment or {})}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.spark
def test_the_readme_runs_as_written(tmp_path: Path) -> None:
    (tmp_path / "captures").symlink_to(CAPTURES)
    made = command_in("README.md", "### On Spark")
    ran = run(made, tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    rows = dict(line.split()[:2] for line in ran.stdout.splitlines())
    assert list(rows) == list(SCHEMAS)
    assert int(rows["exchanges"]) > 10
    out = tmp_path / "tables"
    assert {each.name for each in out.iterdir()} >= {"exchanges", "summaries"}
    assert not (out / "_work").exists()
    repeated = run(made, tmp_path)
    assert repeated.returncode == 2
    assert repeated.stderr == "kafkashark: tables is not empty; --overwrite replaces its tables\n"


@pytest.mark.spark
def test_the_example_of_a_watched_folder_runs(tmp_path: Path) -> None:
    flag, folder, *rest = command_in("docs/pipeline.md", "## Watching a folder")
    assert (flag, folder) == ("--watch", "/data/incoming")
    (tmp_path / "incoming").mkdir()
    shutil.copy(DENIED, tmp_path / "incoming")
    (tmp_path / "incoming" / "notes.txt").write_text("no capture at all")
    ran = run([flag, "incoming", *rest, "--once"], tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert (tmp_path / "tables" / "exchanges").is_dir()
    (tmp_path / "incoming" / "cut.pcap").write_bytes(Path(DENIED).read_bytes()[:9])
    ran = run([flag, "incoming", *rest, "--once"], tmp_path)
    said = f"kafkashark: {tmp_path}/incoming/cut.pcap: pcap file cut off in its header at byte 9\n"
    assert (ran.returncode, ran.stderr) == (2, said)


@pytest.mark.spark
def test_modules_in_the_current_folder_do_not_shadow_those_of_workers(tmp_path: Path) -> None:
    for name in ("pipeline", "secrets"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a script of the user ran')")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    script = Path(sys.executable).with_name("kafkashark")
    command = [script, "pipeline", DENIED, "--out", "out", "--tables", "exchanges"]
    ran = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_command_runs_as_a_file() -> None:
    """As with `spark-submit`; modules beside it have names of the standard library."""
    command = [sys.executable, str(ROOT / "pipeline/__main__.py"), "--help"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "--out DIR" in ran.stdout


@pytest.mark.spark
def test_without_captures_no_table_is_replaced(tmp_path: Path) -> None:
    """With the message and the status of the other commands."""
    (tmp_path / "notes.txt").write_text("no capture at all")
    kept = tmp_path / "out" / "exchanges" / "kept"
    kept.mkdir(parents=True)
    ran = run(["notes.txt", "--out", "out", "--overwrite"], tmp_path)
    assert (ran.returncode, ran.stderr) == (2, "kafkashark: notes.txt: not a capture: text\n")
    assert kept.is_dir()


@pytest.mark.spark
def test_impossible_summaries_are_refused_before_the_job(tmp_path: Path) -> None:
    """Arrow can write tables there, but Spark can't read them."""
    out = f"s3a://{BUCKET}/out"
    with bucket() as kept:
        ran = run([DENIED, "--out", out], tmp_path, kept.environment)
        assert not kept.objects
    assert ran.returncode == 2
    assert ran.stderr == (
        f"kafkashark: Spark can't read {out}, which summaries and --format need: "
        "--no-summaries makes only the tables\n"
    )


def test_captures_that_could_not_be_read_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert report_unread([]) == 0
    assert capsys.readouterr().err == ""
    assert report_unread(f"{each % 12}.pcap: no such file" for each in range(24)) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "kafkashark: 0.pcap: no such file"
    assert lines[MAX_REPORTED:] == ["kafkashark: and 2 more captures could not be read"]


@pytest.mark.spark
def test_a_capture_that_could_not_be_read_is_status_2(tmp_path: Path) -> None:
    """The others are in the tables; other files in a folder are no captures."""
    (tmp_path / "notes.txt").write_text("no capture at all")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "notes.txt").write_text("no capture at all")
    (tmp_path / "folder" / "a.pcap").symlink_to(DENIED)
    words = ["--out", "out", "--overwrite", "--tables", "exchanges"]
    ran = run(["folder", *words], tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    again = run(["folder", "notes.txt", *words], tmp_path)
    assert (again.returncode, again.stdout) == (2, ran.stdout)
    assert again.stderr == "kafkashark: notes.txt: not a capture: text\n"
