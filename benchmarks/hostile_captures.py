"""Small hostile captures that once took minutes, against the target of 10 s of processor time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.timing import KAFKASHARK, Row, process

TARGET_S = 10.0

FOLDER = Path(__file__).parents[2] / "shared" / "repro"
"""The captures lie beside the project; without them there are no rows."""

CAPTURES = (
    "bomb-bodies.pcap",
    "slow-colliding-addresses.pcap.gz",
    "slow-n.pcap.gz",
    "slow-orphans.pcap.gz",
)
COMMANDS = (
    "dissect -V",
    "pairs --bodies -T ndjson",
    "records",
    "timeline",
    "export --redact -o {out}",
)


def rows(folder: Path) -> Iterator[Row]:
    """Time each command on each capture."""
    for path in filter(Path.is_file, map(FOLDER.joinpath, CAPTURES)):
        for command in COMMANDS:
            words = command.format(out=folder / "out.pcapng").split()
            run = process((*KAFKASHARK, *words, str(path)), runs=1)
            figures = f"{run.cpu_s:.1f} s, {run.peak_bytes / 1e6:,.0f} MB"
            what = f"{command.partition(' -o')[0]}, {path.name.partition('.')[0]}, processor"
            yield Row(what, f"{TARGET_S:.0f} s", TARGET_S / run.cpu_s, figures, 1.0)
