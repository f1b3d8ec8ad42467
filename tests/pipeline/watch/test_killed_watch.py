"""A watch that is killed within batches loses and repeats nothing; files that are no whole ones."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.jobs.query import read
from pipeline.tables.table_schemas import SCHEMAS
from pipeline.watch.stream_job import IDLE_NS
from tests.pipeline.command_tables import assert_same, tables_of
from tests.pipeline.split_captures import imperfect_packets
from tests.tcp_captures import START_NS, Packet, write
from tests.waiting import child, wait_until

pytestmark = pytest.mark.spark

FILES = 8


class Incoming:
    """A watched folder, and the files that will arrive in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "in"
        self.out = folder / "out"
        self.folder.mkdir()
        self.arrived: list[Path] = []
        packets = imperfect_packets(1)
        each = -(-len(packets) // FILES)
        self._waiting = [
            Path(write(folder / f"a.pcap{at}", packets[at * each : (at + 1) * each]))
            for at in range(FILES)
        ]
        quiet = Packet(START_NS + 3 * IDLE_NS, b"\xff" * 12 + b"\x08\x06" + bytes(46))
        self._waiting.append(Path(write(folder / "z", [quiet])))

    def arrive(self, count: int) -> None:
        """Move the next files into the folder, as a capture host does."""
        for file in self._waiting[:count]:
            at = 1_700_000_000 + len(self.arrived)
            os.utime(file, (at, at))
            self.arrived.append(file.rename(self.folder / file.name))
        del self._waiting[:count]

    def command(self, *more: str) -> list[str]:
        """Return the command that watches the folder."""
        words = ["--watch", str(self.folder), "--out", str(self.out), "--master", "local[2]"]
        return [sys.executable, "-m", "pipeline", *words, "--fields", "all", *more]

    def has(self, pattern: str) -> Callable[[], bool]:
        """Return a condition: files of this pattern are in the folder of the tables."""

        def check() -> bool:
            with suppress(FileNotFoundError):  # a folder disappears meanwhile
                return next(self.out.glob(pattern), None) is not None
            return False

        return check

    def ended_watch(self) -> None:
        """Watch until all files are processed."""
        ran = subprocess.run(self.command("--once"), capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stderr) == (0, "")


def test_a_watch_that_is_killed_within_batches(
    without_session: None, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    incoming = Incoming(tmp_path)
    incoming.arrive(3)
    cut = incoming.arrived[-1]
    whole = cut.read_bytes()
    cut.write_bytes(whole[:-9])  # it still grows
    os.utime(cut, (1_700_000_002, 1_700_000_002))
    with child(subprocess.Popen(incoming.command(), start_new_session=True)) as process:
        wait_until(incoming.has("_work/files/shards/*.arrow"), "shards of the first batch")
        os.killpg(process.pid, signal.SIGKILL)
    assert not incoming.has("_checkpoint/commits/0")()
    with child(subprocess.Popen(incoming.command(), start_new_session=True)) as process:
        wait_until(incoming.has("_checkpoint/commits/0"), "the end of the first batch")
        cut.write_bytes(whole)
        incoming.arrive(3)
        wait_until(incoming.has("messages/**/00000001-*.parquet"), "tables of the second batch")
        os.killpg(process.pid, signal.SIGKILL)
    incoming.arrive(3)
    incoming.ended_watch()

    spark: SparkSession = request.getfixturevalue("spark")
    cut.write_bytes(whole[:-9])
    got = {
        table: read(spark, str(incoming.out), table).select(*schema.names).toArrow().cast(schema)
        for table, schema in SCHEMAS.items()
    }
    assert_same(got, tables_of(incoming.arrived, tmp_path))
    problems = [row for row in got["problems"].to_pylist() if row["kind"] == "file"]
    [problem] = problems
    assert problem["capture"] == str(cut)
    assert problem["problem"].startswith("cut off: ")
