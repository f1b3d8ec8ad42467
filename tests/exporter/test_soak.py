"""Traffic of hours through `exporter -`: its memory stays flat."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import islice
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.waiting import child
from tools.record.steady import FILE_HEADER, records, traffic

PACKETS = int(os.environ.get("KAFKASHARK_SOAK_PACKETS", "1200000"))
"""6,900,000 are an hour of 500 exchanges a second."""

COMMAND = (sys.executable, "-m", "kafkashark", "exporter", "-", "--listen", "127.0.0.1:0")
CONNECTIONS, PARTS = 300, 20
COUNTED = re.compile(r"^kafkashark_api_exchanges_total\{.*\} (\d+)", re.MULTILINE)
MOST_GROWTH = 1.15
"""Between the half and the end; the interpreter's memory varies."""


def memory_mb(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024 / 1e6


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_memory_stays_flat() -> None:
    with child(subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stderr=subprocess.PIPE)) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        found = re.search(rb"http://\S+", process.stderr.readline())
        assert found is not None
        feed = records(traffic(CONNECTIONS))
        process.stdin.write(FILE_HEADER)
        memory, exchanges = list[float](), [0]
        for part in range(1, PARTS + 1):
            process.stdin.writelines(islice(feed, PACKETS // PARTS))
            with urlopen(found[0].decode()) as answer:
                exchanges.append(sum(map(int, COUNTED.findall(answer.read().decode()))))
            memory.append(memory_mb(process.pid))
            print(f"{part / PARTS:.0%}: {exchanges[-1]:,} exchanges, {memory[-1]:,.0f} MB")
        process.stdin.close()
        process.stderr.read()
    assert exchanges == sorted(exchanges)
    assert exchanges[-1] > PACKETS // 5
    assert memory[-1] < MOST_GROWTH * memory[PARTS // 2 - 1]
