"""`pairs` on damaged captures, against the same capture undamaged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.timing import KAFKASHARK, Row, Run, process
from tools.record.steady import write

PACKETS = 250_000
MORE_PACKETS = 4 * PACKETS

TARGETS = {"lost": 1 / 1.3, "doubled": 1 / 2.5, "reordered": 1 / 1.5}
"""Kind of damage -> target ratio of processor time."""


def rows(folder: Path) -> Iterator[Row]:
    """Time captures with lost, doubled and reordered packets."""
    clean = _pairs(folder, PACKETS)
    for damage, target in TARGETS.items():
        run = _pairs(folder, PACKETS, damage)
        name = f"pairs -T ndjson, packets {damage}"
        cpu = f"{run.cpu_s:.2f} s against {clean.cpu_s:.2f} s"
        yield Row(f"{name}, processor", "undamaged", clean.cpu_s / run.cpu_s, cpu, target)
        yield _memory(f"{name}, memory", clean, run)
    clean, run = _pairs(folder, MORE_PACKETS), _pairs(folder, MORE_PACKETS, "lost")
    yield _memory(f"pairs -T ndjson, packets lost, memory, {MORE_PACKETS:,} packets", clean, run)


def _pairs(folder: Path, packets: int, damage: str = "") -> Run:
    capture = folder / "damaged.pcap"
    write(capture, packets, damage=damage)
    output = str(folder / "pairs.ndjson")
    return process((*KAFKASHARK, "pairs", str(capture), "-T", "ndjson", "-o", output))


def _memory(what: str, clean: Run, run: Run) -> Row:
    figures = f"{run.peak_bytes / 1e6:,.0f} MB against {clean.peak_bytes / 1e6:,.0f} MB"
    return Row(what, "undamaged", clean.peak_bytes / run.peak_bytes, figures, 1 / 1.3)
