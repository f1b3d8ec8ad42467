"""Commands that read whole messages, against `pairs` of the same capture, by processor."""

from __future__ import annotations

import shutil
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path

from benchmarks.layout_captures import PACKETS, different_batches
from benchmarks.timing import KAFKASHARK, Row, Run, process
from tools.record.steady import write

MORE = 4
"""How many times as large the capture is whose memory is compared."""

LESS_MEMORY = 1 / 1.2
FOUND = (0, 1)
"""Exit statuses of commands that tell so whether they found something."""

COMMANDS: Mapping[str, float | None] = {
    "groups -T ndjson": 1.5,
    "upgrade --to latest": 1.5,
    "stats --by minute,client,api,version,topic,error": 1.5,
    "advise": 1.5,
    "records -T ndjson": 2.5,
    "timeline -T ndjson": 3.0,
    "findings": None,
    "report": 6.0,
    "conform": 6.0,
    "export --redact": 8.0,
}
"""Command -> how many times the processor time of `pairs` it may take, if there is a target."""

FILES = {"pairs": ".parquet", "records": ".ndjson", "report": ".html", "export": ".pcapng"}
"""Command whose output goes to a file with `-o` -> suffix of that file."""


def rows(folder: Path) -> Iterator[Row]:
    """Time commands on long connections, and on batches that all differ; compare their memory."""
    steady, larger, different = (folder / f"{name}.pcap" for name in ("steady", "larger", "other"))
    write(steady, PACKETS)
    different_batches(different)
    first = yield from _against_pairs(steady, "long connections")
    yield from _against_pairs(different, "batches that all differ")
    different.unlink()
    yield from _against_tshark(steady, folder)
    write(larger, MORE * PACKETS)
    for words, run in first.items():
        more = _run(words, larger, runs=1)
        figures = f"{more.peak_bytes / 1e6:,.0f} MB against {run.peak_bytes / 1e6:,.0f} MB"
        ratio = run.peak_bytes / more.peak_bytes
        what = f"{words}, memory, {MORE} times the packets"
        yield Row(what, "a fourth of them", ratio, figures, LESS_MEMORY)


def _against_pairs(capture: Path, layout: str) -> Generator[Row, None, dict[str, Run]]:
    """Yield the rows of a capture; return the run of each command."""
    runs = {}
    for words, most in COMMANDS.items():
        # In turns: the machine may be faster or slower a minute later.
        pairs = _run("pairs -T parquet --jobs 1", capture, runs=3)
        runs[words] = run = _run(words, capture, runs=2)
        figures = f"{run.cpu_s:.2f} s against {pairs.cpu_s:.2f} s"
        target = None if most is None else 1 / most
        what = f"{words}, {layout}, processor"
        yield Row(what, "pairs -T parquet", pairs.cpu_s / run.cpu_s, figures, target)
    return runs


def _against_tshark(capture: Path, folder: Path) -> Iterator[Row]:
    tshark = shutil.which("tshark")
    if tshark is None:
        return
    copy = str(folder / "chosen.pcapng")
    chosen = ("-Y", "kafka.api_key == 0", "-w", copy)
    peer = process((tshark, "-r", str(capture), *chosen), runs=2)
    own = _run("export -Y api==Produce", capture, runs=2)
    figures = f"{own.cpu_s:.2f} s against {peer.cpu_s:.2f} s"
    what = "export -Y api==Produce, processor"
    yield Row(what, "tshark -Y -w", peer.cpu_s / own.cpu_s, figures, 1.0)


def _run(words: str, capture: Path, runs: int) -> Run:
    name, *options = words.split()
    if name in FILES:
        options += ["-o", str(capture.with_suffix(FILES[name]))]
    return process((*KAFKASHARK, name, str(capture), *options), runs=runs, statuses=FOUND)
