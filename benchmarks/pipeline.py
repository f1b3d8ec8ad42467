"""The pipeline on `local[2]` against two processes of the engine, and its growth with files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from urllib.request import urlopen

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from benchmarks import timing
from benchmarks.timing import KAFKASHARK, Row, peak_memory
from pipeline.jobs.job import Request, make_tables
from pipeline.jobs.session import open_session
from pipeline.tables.table_builder import TableOptions
from tools.record.large import write
from tools.record.steady import save, traffic

FILES = 8
PACKETS = 250_000
"""Packets per file."""

RUNS = 3
TARGET = 0.6
IN_PROPORTION = 0.8

EXCHANGES = TableOptions(tables=frozenset(("exchanges",)))

SETTINGS = {"spark.driver.memory": "2g", "spark.ui.enabled": "true", "spark.ui.port": "0"}
"""The REST API of Spark's UI reports the bytes of the shuffle."""


# Workers import nothing from the current folder: they get the functions of these modules as such.
for _module in (sys.modules[__name__], timing):
    cloudpickle.register_pickle_by_value(_module)


def rows(folder: Path) -> Iterator[Row]:
    """Yield the lines of the table."""
    long_lived = rotated(folder / "long")
    short = [str(each) for each in contained(folder / "short")]
    with open_session("local[2]", SETTINGS) as spark:
        for what, files in (("connections over all files", long_lived), ("within files", short)):
            yield from _compared(spark, what, files, folder)
        one, all_of_them = (
            min(_job(spark, long_lived[:count], folder)[0] for _ in range(RUNS))
            for count in (1, FILES)
        )
        figures = f"{one:.1f} s, {all_of_them:.1f} s"
        ratio = FILES * one / all_of_them
        yield Row(f"pipeline: {FILES} files", "one file", ratio, figures, IN_PROPORTION)
    yield from _of_elephants(folder)


def _of_elephants(folder: Path) -> Iterator[Row]:
    """Compare the memory of workers for one connection with about half of all bytes."""
    peaks, sizes = [], []
    for count in (FILES // 4, FILES):
        files = elephants(folder / f"elephants-{count}", count)
        with open_session("local[2]", SETTINGS) as spark:
            make_tables(spark, Request(files, str(folder / "out"), EXCHANGES, overwrite=True))
            # Spark reuses the workers of the job for this, unlike those of queries.
            tasks = spark.sparkContext.parallelize(range(16), 16)
            peaks.append(max(tasks.mapPartitions(worker_peak).collect()))
        sizes.append(sum(Path(file).stat().st_size for file in files))
    figures = ", ".join(
        f"{size / 1e6:,.0f} MB: {peak / 1e6:.0f} MB"
        for size, peak in zip(sizes, peaks, strict=True)
    )
    peer = f"of {FILES // 4} files"
    yield Row("pipeline: memory of a worker", peer, peaks[0] / peaks[1], figures, IN_PROPORTION)


def worker_peak(_: Iterable[int]) -> Iterator[int]:
    """Yield the peak resident memory of a worker in bytes."""
    yield peak_memory(os.getpid())


def elephants(folder: Path, count: int) -> list[str]:
    """Write captures of one connection across all files, and of short ones."""
    folder.mkdir()
    packets = traffic(1)
    for number in range(count):
        save(folder / f"elephant-{number}.pcap", islice(packets, PACKETS // 2))
    write(folder / "short.pcap", count * PACKETS // 2, count)
    return [str(each) for each in folder.iterdir()]


def rotated(folder: Path) -> list[str]:
    """Write captures of connections across all files."""
    folder.mkdir()
    packets = traffic(300)
    files = [folder / f"{number}.pcap" for number in range(FILES)]
    for file in files:
        save(file, islice(packets, PACKETS))
    return [str(file) for file in files]


def contained(folder: Path) -> list[Path]:
    """Write captures of short connections, few of them across files."""
    folder.mkdir()
    write(folder / "short.pcap", FILES * PACKETS, FILES)
    return sorted(folder.iterdir())


def _compared(spark: SparkSession, what: str, files: Sequence[str], folder: Path) -> Iterator[Row]:
    # Alternating, because the speed of a shared machine varies.
    jobs, pairs = zip(
        *((_job(spark, files, folder), _two(files, folder)) for _ in range(RUNS)), strict=True
    )
    (ours, shuffled), theirs = min(jobs), min(pairs)
    size = sum(Path(file).stat().st_size for file in files)
    figures = f"{size / 1e6:,.0f} MB: {ours:.1f} s, {theirs:.1f} s"
    yield Row(f"pipeline, {what}", "two processes", theirs / ours, figures, TARGET)
    figures = f"{shuffled / 1e6:.1f} MB of {size / 1e6:,.0f} MB"
    yield Row(f"pipeline, {what}: shuffled", "captured", size / max(shuffled, 1), figures, 1)


def _job(spark: SparkSession, files: Sequence[str], folder: Path) -> tuple[float, int]:
    """Return the duration of a job in seconds, and the shuffled bytes."""
    before = _shuffled(spark)
    begun = time.perf_counter()
    make_tables(spark, Request(files, str(folder / "out"), EXCHANGES, overwrite=True))
    seconds = time.perf_counter() - begun
    return seconds, _shuffled(spark) - before


def _shuffled(spark: SparkSession) -> int:
    context = spark.sparkContext
    url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages"
    with urlopen(url) as answer:
        return sum(stage["shuffleWriteBytes"] for stage in json.load(answer))


def _two(files: Sequence[str], folder: Path) -> float:
    """Return the duration of two parallel processes, each for half of the files."""
    begun = time.perf_counter()
    halves = []
    middle = len(files) // 2
    # Neighbouring files stay together, as missing files between others would be gaps.
    for half, part in enumerate((files[:middle], files[middle:])):
        words = ["-T", "parquet", "-o", str(folder / f"{half}.parquet"), "--jobs", "1"]
        command = [*KAFKASHARK, "pairs", *part, *words]
        halves.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
    statuses = [process.wait() for process in halves]
    assert statuses == [0, 0]
    return time.perf_counter() - begun
