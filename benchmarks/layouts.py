"""Captures of other layouts: short and many connections, other protocols, few large messages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.layout_captures import GRO_BYTES, LAYOUTS, large_fetches
from benchmarks.timing import KAFKASHARK, Row, Run, process
from benchmarks.whole_commands import PAIR_FIELDS
from tools.record import generations, large

SHORT_PACKETS = 1_000_000
MANY_PACKETS = 4_200_000
"""They make 197,261 connections."""

HTTP_PACKETS = 250_000
CHOSEN = ("--columns", "api_key,api_version,correlation_id")
"""The fields that tshark is asked for."""

LEAST_FASTER = 8.0
"""How much faster than tshark at least, in any layout."""


def layout_rows(folder: Path) -> Iterator[Row]:
    """Time `pairs` of each layout, all columns and three, against tshark's rows of these three."""
    tshark = shutil.which("tshark")
    if tshark is None:
        return
    capture = folder / "layout.pcap"
    for name, write in LAYOUTS.items():
        write(capture)
        peer = process((tshark, "-r", str(capture), "-T", "fields", *PAIR_FIELDS), runs=1)
        for columns, options in (("all columns", ()), ("the same columns", CHOSEN)):
            own = _pairs(capture, folder, *options)
            figures = f"{own.cpu_s:.2f} s against {peer.cpu_s:.2f} s"
            what = f"pairs -T ndjson, {columns}, {name}, processor"
            yield Row(what, "tshark -T fields", peer.cpu_s / own.cpu_s, figures, LEAST_FASTER)


def short_rows(folder: Path) -> Iterator[Row]:
    """Time short connections with lost packets, against all packets."""
    clean, lost = folder / "clean.pcap", folder / "lost.pcap"
    generations.write(clean, SHORT_PACKETS)
    generations.write(lost, SHORT_PACKETS, lost=True)
    whole, less = _pairs(clean, folder), _pairs(lost, folder)
    what = "pairs, short connections, packets lost"
    yield from _both(what, "all packets", whole, less, (1 / 1.5, 1 / 1.3))


def many_rows(folder: Path) -> Iterator[Row]:
    """Time many connections, one after the other, against a quarter of them."""
    quarter, whole = folder / "quarter.pcap", folder / "whole.pcap"
    large.write(quarter, MANY_PACKETS // 4, 1)
    large.write(whole, MANY_PACKETS, 1)
    less, more = (_pairs(each, folder, runs=1) for each in (quarter, whole))
    yield from _both(
        "pairs, 197,261 connections", "a quarter of them", less, more, (1 / 4.2, 1 / 1.2)
    )


def http_rows(folder: Path) -> Iterator[Row]:
    """Time a capture of mostly HTTP, against the port of Kafka given."""
    capture = folder / "http.pcap"
    generations.write(capture, HTTP_PACKETS, http=True)
    chosen, own = _pairs(capture, folder, "--port", "9092"), _pairs(capture, folder)
    yield from _both("pairs, 95 % HTTP", "--port 9092", chosen, own, (1 / 1.3, None))


def gro_rows(folder: Path) -> Iterator[Row]:
    """Time the text of few large messages, in the segments that a network card merged."""
    tshark = shutil.which("tshark")
    if tshark is None:
        return
    capture = folder / "gro.pcap"
    for codec in ("none", "zstd"):
        large_fetches(capture, GRO_BYTES, codec)
        # With this filter it prints the same messages.
        peer = process((tshark, "-r", str(capture), "-Y", "kafka"))
        own = process((*KAFKASHARK, "dissect", str(capture)))
        figures = f"{own.cpu_s:.2f} s against {peer.cpu_s:.2f} s, {own.peak_bytes / 1e6:,.0f} MB"
        yield Row(
            f"dissect as text, segments of 60 KB, compression {codec}, processor",
            "tshark -Y kafka",
            peer.cpu_s / own.cpu_s,
            figures,
            3.0,
        )


def _pairs(capture: Path, folder: Path, *options: str, runs: int = 3) -> Run:
    output = str(folder / "pairs.ndjson")
    command = (*KAFKASHARK, "pairs", str(capture), "-T", "ndjson", "-o", output, *options)
    return process(command, runs=runs)


def _both(
    what: str, peer: str, less: Run, more: Run, targets: tuple[float | None, float | None]
) -> Iterator[Row]:
    """Yield the rows of processor time and of memory; with their targets."""
    row = partial(Row, peer=peer)
    cpu = f"{more.cpu_s:.2f} s against {less.cpu_s:.2f} s"
    yield row(
        what=f"{what}, processor", ratio=less.cpu_s / more.cpu_s, figures=cpu, target=targets[0]
    )
    peak = f"{more.peak_bytes / 1e6:,.0f} MB against {less.peak_bytes / 1e6:,.0f} MB"
    yield row(
        what=f"{what}, memory",
        ratio=less.peak_bytes / more.peak_bytes,
        figures=peak,
        target=targets[1],
    )
