"""
How the pipeline grows on `local[2]`: 1, 2, 4 and 8 times the work, each in processes of its own.

    python -m benchmarks growth
    python -m benchmarks.pipeline_growth FILE...    # a single job; prints its figures as JSON
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from urllib.request import urlopen

from pyspark.sql import SparkSession

from benchmarks.timing import Row, caching_environment, peak_memory
from pipeline.jobs.job import Request, make_tables
from pipeline.jobs.session import open_session
from pipeline.tables.table_builder import TableOptions
from tools.record.large import CAPTURES, write
from tools.record.large import traffic as short_traffic
from tools.record.steady import save, traffic

TIMES = (1, 2, 4, 8)
PACKETS = 175_000
"""Packets of a file of short connections: some 32 MB."""

LONG_PACKETS = 78_000
"""Packets of a file of which one connection has most bytes: some 32 MB."""

SMALL_FILES = 100
SMALL_PACKETS = 100
"""Number of small files, and packets of each: some 50 kB."""

ELEPHANT = 0.9
"""The share of one connection in the bytes of a capture."""

RANGE_BYTES = 8 << 20
"""Small, so that each capture has many ranges."""

PARTS = 2
"""Parts for connections across ranges, which are given shards, as on a cluster."""

TABLES = TableOptions(tables=frozenset(("connections", "exchanges")))
SETTINGS = {"spark.driver.memory": "1g", "spark.ui.enabled": "true", "spark.ui.port": "0"}
"""The REST API of Spark's UI reports the bytes of the shuffle, and of results."""

IN_PROPORTION = 0.8
DEMO = CAPTURES / "demo.pcap"


@dataclass(frozen=True, slots=True)
class Figures:
    """
    What a job took.

    Attributes:
        bytes: Size of the captures.
        files: Number of their files.
        cpu_s: Processor time of the driver, its Java and the workers, after the start.
        driver: Peak memory of the driver, in bytes.
        java: Peak memory of its Java.
        worker: Peak memory of the largest worker.
        shuffled: Bytes that Spark shuffled.
        collected: Bytes of results that the driver received.
        spilled: Bytes of rows and shards that tasks wrote for later ones.
    """

    bytes: int
    files: int
    cpu_s: float
    driver: int
    java: int
    worker: int
    shuffled: int
    collected: int
    spilled: int


def rows(folder: Path) -> Iterator[Row]:
    """Yield the lines of the table."""
    _run([str(DEMO)])  # compiles modules
    for what, files_of in captures(folder).items():
        found = [_run(files_of[: times * len(files_of) // TIMES[-1]]) for times in TIMES]
        yield from _compared(what, found)


def captures(folder: Path) -> Mapping[str, list[str]]:
    """Write the captures of eight times the work, in eight groups of as many files."""
    for name in ("short", "elephant", "small"):
        (folder / name).mkdir()
    count = TIMES[-1]
    packets = _with_an_elephant()
    for number in range(count):
        save(folder / "elephant" / f"{number}.pcap", islice(packets, LONG_PACKETS))
    packets = traffic(100)
    for number in range(count * SMALL_FILES):
        save(folder / "small" / f"{number:05}.pcap", islice(packets, SMALL_PACKETS))
    write(folder / "short" / "short.pcap", count * PACKETS, count)
    return {
        "one connection has 90 %": _files(folder / "elephant"),
        "small files": _files(folder / "small"),
        "short connections": _files(folder / "short"),
    }


def _files(folder: Path) -> list[str]:
    return sorted(str(each) for each in folder.iterdir())


def _with_an_elephant() -> Iterator[tuple[int, bytes]]:
    """Yield the packets of one connection, and short ones with the rest of the bytes."""
    others, large, small = short_traffic(), 0, 0
    for time_ns, data in traffic(1):
        yield time_ns, data
        large += len(data)
        while small < large * (1 - ELEPHANT) / ELEPHANT:
            _, data = next(others)
            yield time_ns, data
            small += len(data)


def _run(files: Sequence[str]) -> Figures:
    """Run a job in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.pipeline_growth", *files]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, env=caching_environment(), check=True, text=True
    )
    return Figures(**json.loads(done.stdout))


def _compared(what: str, found: Sequence[Figures]) -> Iterator[Row]:
    sizes = " ".join(f"{each.bytes / 1e6:,.0f}" for each in found)
    times = TIMES[-1]
    cpu = [each.cpu_s for each in found]
    texts = " ".join(f"{each:.1f}" for each in cpu)
    yield Row(
        *(f"growth, {what}: processor", f"{times} times one", times * cpu[0] / cpu[-1]),
        *(f"{sizes} MB: {texts} s", IN_PROPORTION),
    )
    for name in ("driver", "java", "worker"):
        values = [getattr(each, name) for each in found]
        texts = " ".join(f"{each / 1e6:,.0f}" for each in values)
        yield Row(
            *(f"growth, {what}: memory of {name}", "one", values[0] / values[-1]),
            *(f"{texts} MB", None if name == "java" else IN_PROPORTION),
        )
    for name in ("shuffled", "collected", "spilled"):
        values = [getattr(each, name) for each in found]
        texts = " ".join(f"{each / 1e3:,.0f}" for each in values)
        ratio = times * values[0] / max(values[-1], 1)
        yield Row(f"growth, {what}: {name}", f"{times} times one", ratio, f"{texts} kB")


def measured(files: Sequence[str]) -> Figures:
    """Run a job in this process, and return what it took."""
    with tempfile.TemporaryDirectory() as out, open_session("local[2]", SETTINGS) as spark:
        request = Request(files, f"{out}/tables", TABLES, RANGE_BYTES, PARTS, summaries=False)
        spilled = 0

        def note(stage: str) -> None:
            nonlocal spilled
            if stage == "writing tables":
                spilled = sum(each.stat().st_size for each in Path(out).rglob("_work/**/*.arrow"))

        before = _cpu_s(_processes())
        make_tables(spark, request, note)
        processes = _processes()
        java, *workers = (peak_memory(each) for each in processes)
        stages = _stages(spark)
        return Figures(
            bytes=sum(Path(file).stat().st_size for file in files),
            files=len(files),
            cpu_s=_cpu_s(processes) - before,
            driver=peak_memory(os.getpid()),
            java=java,
            worker=max(workers),
            shuffled=sum(each["shuffleWriteBytes"] for each in stages),
            collected=sum(each["resultSize"] for each in stages),
            spilled=spilled,
        )


def _processes() -> list[int]:
    """Return Java, a child of this process, and then all processes that it has started."""
    found, at = [os.getpid()], 0
    while at < len(found):
        for thread in Path(f"/proc/{found[at]}/task").glob("*/children"):
            found += map(int, _told(thread).split())
        at += 1
    # A process that has ended but was not waited for has no memory.
    return [each for each in found[1:] if "VmHWM" in _told(Path(f"/proc/{each}/status"))]


def _told(path: Path) -> str:
    """Return what the system tells of a process or a thread, nothing if it has ended."""
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _cpu_s(processes: Iterable[int]) -> float:
    """Return the processor time of this process and others, in seconds."""
    total = 0
    for each in (os.getpid(), *processes):
        fields = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def _stages(spark: SparkSession) -> list[dict[str, int]]:
    context = spark.sparkContext
    url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages"
    with urlopen(url) as answer:
        stages: list[dict[str, int]] = json.load(answer)
        return stages


if __name__ == "__main__":
    print(json.dumps(asdict(measured(sys.argv[1:]))))
