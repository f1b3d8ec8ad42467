"""No command takes memory, time or an exception from the numbers of a capture."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from dissector.protocol.api import Api
from tests.kafkashark.extreme_commands import COMMANDS
from tests.kafkashark.extreme_values import extreme_packets, newest
from tests.tcp_captures import write

MAX_BYTES = 700 << 20
"""Peak memory of a process that ran all commands; most of it is that of imported packages."""


def every_version(api: Api) -> list[int]:
    return list(api.request.versions)


@pytest.mark.long
@pytest.mark.parametrize("versions_of", [newest, every_version])
def test_numbers_of_a_capture_cost_neither_memory_nor_a_command(
    versions_of: Callable[[Api], Iterable[int]], tmp_path: Path
) -> None:
    path = write(tmp_path / "a.pcap", extreme_packets(versions_of))
    words = [sys.executable, "-m", "tests.kafkashark.extreme_commands", path, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["command"] for row in rows] == [*map(" ".join, COMMANDS), "serve"]
    for row in rows:
        assert row["status"] in (0, 1), row
        assert "bug in kafkashark" not in row["messages"], row
        assert row["peak"] < MAX_BYTES, row
