"""Spoiled captures through every kernel: each index is checked where kernels are built for it."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.conform.mutations import MUTATIONS, file_of, packets_of, spoil
from tests.dissector.cli.conftest import Run

COMMANDS = (
    ("pairs", "-T", "ndjson", "--bodies"),
    ("records", "-T", "csv"),
    ("dissect", "-T", "ndjson"),
    ("dissect", "-T", "parquet", "-Y", "topic == orders or latency_ms > 1"),
)


SAMPLE = sorted((Path(__file__).parents[3] / "captures").glob("*.pcap"))[::6]


@pytest.mark.parametrize("path", SAMPLE, ids=lambda path: path.stem)
def test_spoiled_bytes_are_read(path: Path, run: Run, tmp_path: Path) -> None:
    head, packets = packets_of(path)
    random = Random(path.name)
    file = tmp_path / "spoiled.pcap"
    for damaged in (packets, random.choice(MUTATIONS)(packets, random) or packets[:1]):
        file.write_bytes(file_of(head, spoil(damaged, random)))
        for command, *options in COMMANDS:
            done = run(command, file, "-o", tmp_path / "out", *options)
            assert done.status == 0, (command, done.err)
