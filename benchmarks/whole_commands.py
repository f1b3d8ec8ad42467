"""Whole commands on whole captures, against tshark and tcpdump, and against themselves."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from benchmarks.timing import KAFKASHARK, Row, process
from tools.record.steady import write

PACKETS = 1_000_000
FIELDS = ("kafka.api_key", "kafka.api_version", "kafka.correlation_id")


def rows(folder: Path) -> Iterator[Row]:
    """Time commands on captures of mixed traffic."""
    large, fourth, small = folder / "large.pcap", folder / "fourth.pcap", folder / "small.pcap"
    write(large, PACKETS)
    write(fourth, PACKETS // 4)
    write(small, 50)
    yield from _against_tshark(large, small, folder)
    yield from _against_tcpdump(large, folder)
    yield from _against_ourselves(large, fourth, folder)


def _pairs(capture: Path, folder: Path, form: str, *options: str) -> tuple[str, ...]:
    output = str(folder / f"pairs.{form}")
    return (*KAFKASHARK, "pairs", str(capture), "-T", form, "-o", output, *options)


def _fields(capture: Path, folder: Path) -> tuple[str, ...]:
    output = str(folder / "fields.parquet")
    return (*KAFKASHARK, "dissect", str(capture), "-T", "parquet", "-o", output)


def _against_tshark(large: Path, small: Path, folder: Path) -> Iterator[Row]:
    tshark = shutil.which("tshark")
    if tshark is None:
        return
    fields = tuple(part for field in FIELDS for part in ("-e", field))
    for path, name, target, runs in (
        (large, f"{PACKETS:,} packets", 40.0, 1),
        (small, "50 packets", 1.0, 5),
    ):
        peer = process((tshark, "-r", str(path), "-T", "fields", *fields), runs=runs)
        own = process(_pairs(path, folder, "ndjson"), runs=5)
        yield Row(
            f"pairs -T ndjson, {name}",
            "tshark -T fields",
            peer.seconds / own.seconds,
            f"{own.seconds:.2f} s against {peer.seconds:.2f} s",
            target,
        )
    peer = process((tshark, "-r", str(large), "-T", "json"), runs=1)
    own = process(_fields(large, folder))
    yield Row(
        "dissect -T parquet, every field",
        "tshark -T json",
        peer.seconds / own.seconds,
        f"{own.seconds:.2f} s against {peer.seconds:.2f} s",
        100.0,
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
        0.25,
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
