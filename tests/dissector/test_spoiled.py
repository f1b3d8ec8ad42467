"""Corrupted captures through every kernel, with index checks if kernels are built for them."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from dissector.cli import main
from tests.conform.mutations import MUTATIONS, file_of, packets_of, spoil

COMMANDS = (
    ("pairs", "-T", "ndjson", "--bodies"),
    ("records", "-T", "csv"),
    ("dissect", "-T", "ndjson"),
    ("dissect", "-T", "parquet", "-Y", "topic == orders or latency_ms > 1"),
)


SAMPLE = sorted((Path(__file__).parents[2] / "captures").glob("*.pcap"))[::6]


@pytest.mark.thinned(12)
@pytest.mark.parametrize("path", SAMPLE, ids=lambda path: path.stem)
def test_corrupted_captures_are_read(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head, packets = packets_of(path)
    random = Random(path.name)
    file = tmp_path / "spoiled.pcap"
    for damaged in (packets, random.choice(MUTATIONS)(packets, random) or packets[:1]):
        file.write_bytes(file_of(head, spoil(damaged, random)))
        for command, *options in COMMANDS:
            status = main([command, str(file), "-o", str(tmp_path / "out"), *options])
            assert status == 0, (command, capsys.readouterr().err)
