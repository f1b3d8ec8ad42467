"""Request logs: the processor time of 100 MB, against 10 s."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

from benchmarks.timing import KAFKASHARK, Row, process

_LOG = Path(__file__).parents[1] / "captures" / "kafka4-request-log.log.gz"
_BYTES = 100 << 20
_MOST_S = 10.0


def rows(folder: Path) -> Iterator[Row]:
    """Time `stats` of a log."""
    lines, log = gzip.decompress(_LOG.read_bytes()), folder / "kafka-request.log"
    with log.open("wb") as file:
        for _ in range(_BYTES // len(lines) + 1):
            file.write(lines)
    run = process((*KAFKASHARK, "stats", str(log)), runs=2)
    figures = f"{run.cpu_s:.2f} s, {run.peak_bytes / 1e6:,.0f} MB of memory"
    yield Row("stats, 100 MB of request log, processor", "10 s", _MOST_S / run.cpu_s, figures, 1)
