"""Whole commands on whole captures, against tshark."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

from benchmarks.messages import Row
from benchmarks.timing import KAFKASHARK, process_s
from tools.record.large import write

PACKETS = 200_000
FIELDS = ("kafka.api_key", "kafka.api_version", "kafka.correlation_id")


def rows(folder: Path) -> Iterator[Row]:
    """Time `pairs` on a large and on a small capture of mixed traffic; nothing without tshark."""
    tshark = shutil.which("tshark")
    if tshark is None:
        return
    large, small, output = folder / "large.pcap", folder / "small.pcap", folder / "out"
    write(large, PACKETS, 1)
    write(small, 50, 1)
    for path, name in ((large, f"{PACKETS:,} packets"), (small, "50 packets")):
        fields = tuple(part for field in FIELDS for part in ("-e", field))
        peer_s = process_s((tshark, "-r", str(path), "-T", "fields", *fields), output)
        own_s = process_s((*KAFKASHARK, "pairs", str(path), "-T", "ndjson"), output)
        figures = f"{own_s:.2f} s against {peer_s:.2f} s"
        yield f"pairs -T ndjson, {name}", "tshark -T fields", peer_s / own_s, figures
