"""Commands on whole captures, against tshark, tcpdump, and themselves."""

from __future__ import annotations

import gzip
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.timing import KAFKASHARK, Row, first_runs, process
from tools.record.steady import write

PACKETS = 1_000_000
FIELDS = ("kafka.api_key", "kafka.api_version", "kafka.correlation_id")
PAIR_FIELDS = tuple(part for field in FIELDS for part in ("-e", field))
"""Options of tshark for what pairing needs."""

SECOND_RUN_S = 0.9
"""Limit for the second run on a machine, in seconds."""

LIGHT_CPU_S = 0.12
"""Limit of the processor time of what needs no capture."""

PEAK_BYTES = 220_000_000
"""Limit for the peak of `pairs`."""

_LOG = Path(__file__).parents[1] / "captures" / "kafka4-request-log.log.gz"
_LOG_BYTES, _MOST_LOG_S = 100 << 20, 10.0


def rows(folder: Path) -> Iterator[Row]:
    """Time commands on captures of mixed traffic."""
    large, fourth = folder / "large.pcap", folder / "fourth.pcap"
    write(large, PACKETS)
    write(fourth, PACKETS // 4)
    yield from _against_tshark(large, folder)
    yield from _against_tcpdump(large, folder)
    yield from _against_ourselves(large, fourth, folder)


def log_rows(folder: Path) -> Iterator[Row]:
    """Time `stats` of 100 MB of a request log, by processor."""
    lines, log = gzip.decompress(_LOG.read_bytes()), folder / "kafka-request.log"
    with log.open("wb") as file:
        for _ in range(_LOG_BYTES // len(lines) + 1):
            file.write(lines)
    run = process((*KAFKASHARK, "stats", str(log)), runs=2)
    ratio, figures = _MOST_LOG_S / run.cpu_s, f"{run.peak_bytes / 1e6:,.0f} MB of memory"
    what = "stats, 100 MB of request log, processor"
    yield Row(what, f"{_MOST_LOG_S:g} s", ratio, f"{run.cpu_s:.2f} s, {figures}", 1)


def start_rows(folder: Path) -> Iterator[Row]:
    """Time what loads little, small captures, and the first use on a machine."""
    python = process((sys.executable, "-c", ""), runs=20)
    for words in (("--version",), ("--help",), ("pairs", "--help")):
        own = process((*KAFKASHARK, *words), runs=20)
        yield Row(
            f"{' '.join(words)}, processor",
            f"{LIGHT_CPU_S} s",
            LIGHT_CPU_S / own.cpu_s,
            f"{own.cpu_s:.3f} s, of which Python {python.cpu_s:.3f} s",
            1.0,
        )
    small, fourth = folder / "small.pcap", folder / "fourth.pcap"
    write(small, 50)
    write(fourth, PACKETS // 4)
    tshark = shutil.which("tshark")
    if tshark is not None:
        peer = process((tshark, "-r", str(small), "-T", "fields", *PAIR_FIELDS), runs=20)
        own = process(_pairs(small, folder, "ndjson"), runs=20)
        yield Row(
            "pairs -T ndjson, 50 packets",
            "tshark -T fields",
            peer.seconds / own.seconds,
            f"{own.seconds:.3f} s against {peer.seconds:.3f} s",
            1 / 0.8,
        )
        yield Row(
            "pairs -T ndjson, 50 packets, processor",
            "tshark -T fields",
            peer.cpu_s / own.cpu_s,
            f"{own.cpu_s:.3f} s against {peer.cpu_s:.3f} s",
            1 / 0.8,
        )
    first, second = (each.seconds for each in first_runs(_pairs(fourth, folder, "ndjson"), 2))
    yield Row(
        f"pairs -T ndjson, {fourth.stat().st_size / 1e6:.0f} MB, second run here",
        f"{SECOND_RUN_S} s",
        SECOND_RUN_S / second,
        f"{second:.2f} s; the first run took {first:.2f} s",
        1.0,
    )


def _pairs(capture: Path, folder: Path, form: str, *options: str) -> tuple[str, ...]:
    output = str(folder / f"pairs.{form}")
    return (*KAFKASHARK, "pairs", str(capture), "-T", form, "-o", output, *options)


def _fields(capture: Path, folder: Path) -> tuple[str, ...]:
    output = str(folder / "fields.parquet")
    return (*KAFKASHARK, "dissect", str(capture), "-T", "parquet", "-o", output)


def _against_tshark(large: Path, folder: Path) -> Iterator[Row]:
    tshark = shutil.which("tshark")
    if tshark is None:
        return
    peer = process((tshark, "-r", str(large), "-T", "fields", *PAIR_FIELDS), runs=1)
    own = process(_pairs(large, folder, "ndjson"), runs=5)
    yield Row(
        f"pairs -T ndjson, {PACKETS:,} packets",
        "tshark -T fields",
        peer.seconds / own.seconds,
        f"{own.seconds:.2f} s against {peer.seconds:.2f} s",
        28.0,
    )
    yield Row(
        f"pairs -T ndjson, {PACKETS:,} packets, peak memory",
        f"{PEAK_BYTES / 1e6:.0f} MB",
        PEAK_BYTES / own.peak_bytes,
        f"{own.peak_bytes / 1e6:,.0f} MB",
        1.0,
    )
    peer = process((tshark, "-r", str(large), "-T", "json"), runs=1)
    own = process(_fields(large, folder))
    yield Row(
        "dissect -T parquet, every field",
        "tshark -T json",
        peer.seconds / own.seconds,
        f"{own.seconds:.2f} s against {peer.seconds:.2f} s",
        50.0,
    )
    peer = process((tshark, "-r", str(large)), runs=1)
    own = process((*KAFKASHARK, "dissect", str(large)))
    yield Row(
        f"dissect as text, {PACKETS:,} packets, processor",
        "tshark",
        peer.cpu_s / own.cpu_s,
        f"{own.cpu_s:.2f} s against {peer.cpu_s:.2f} s",
        2.0,
    )


def _against_tcpdump(large: Path, folder: Path) -> Iterator[Row]:
    tcpdump = shutil.which("tcpdump")
    if tcpdump is None:
        return
    peer = process((tcpdump, "-r", str(large), "-w", "/dev/null"))
    own = process(_pairs(large, folder, "parquet"))
    yield Row(
        f"pairs -T parquet, {PACKETS:,} packets",
        "tcpdump -w /dev/null",
        peer.seconds / own.seconds,
        f"{own.seconds:.2f} s against {peer.seconds:.2f} s",
        1 / 6,
    )


def _against_ourselves(large: Path, fourth: Path, folder: Path) -> Iterator[Row]:
    one = process(_pairs(large, folder, "ndjson", "--jobs", "1"))
    two = process(_pairs(large, folder, "ndjson", "--jobs", "2"))
    yield Row(
        "pairs -T ndjson --jobs 2",
        "--jobs 1",
        one.seconds / two.seconds,
        f"{two.seconds:.2f} s against {one.seconds:.2f} s",
        1.6,
    )
    for name, commands in (
        ("pairs -T ndjson", [_pairs(path, folder, "ndjson") for path in (large, fourth)]),
        ("dissect -T parquet", [_fields(path, folder) for path in (large, fourth)]),
    ):
        more, less = map(process, commands)
        yield Row(
            f"{name}, peak memory, a capture four times as large",
            "the smaller one",
            less.peak_bytes / more.peak_bytes,
            f"{more.peak_bytes / 1e6:,.0f} MB against {less.peak_bytes / 1e6:,.0f} MB",
            1 / 1.2,
        )
