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
SLOWER = 820
"""Times between packets are multiplied: 500 exchanges a second."""

COUNTED = re.compile(r"^kafkashark_api_exchanges_total\{.*\} (\d+)", re.MULTILINE)
CONNECTED = re.compile(r"^kafkashark_capture_connections_total (\d+)", re.MULTILINE)
MOST_GROWTH = 1.15
"""Between the half and the end; the interpreter's memory varies."""


def memory_mb(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found is not None
    return int(found[1]) * 1024 / 1e6


@pytest.mark.long
@pytest.mark.parametrize("short", [False, True])
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux")
def test_memory_stays_flat(short: bool) -> None:
    with child(subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stderr=subprocess.PIPE)) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        found = re.search(rb"http://\S+", process.stderr.readline())
        assert found is not None
        packets = traffic(CONNECTIONS, exchanges=1 if short else 0)
        feed = records((time_ns * SLOWER, data) for time_ns, data in packets)
        process.stdin.write(FILE_HEADER)
        memory, exchanges, connections = list[float](), [0], 0
        for part in range(1, PARTS + 1):
            process.stdin.writelines(islice(feed, PACKETS // PARTS))
            with urlopen(found[0].decode()) as answer:
                text = answer.read().decode()
            exchanges.append(sum(map(int, COUNTED.findall(text))))
            connections = sum(map(int, CONNECTED.findall(text)))
            memory.append(memory_mb(process.pid))
            figures = f"{exchanges[-1]:,} exchanges, {connections:,} connections"
            print(f"{part / PARTS:.0%}: {figures}, {memory[-1]:,.0f} MB", flush=True)
        process.stdin.close()
        process.stderr.read()
    assert exchanges == sorted(exchanges)
    assert exchanges[-1] > PACKETS // 8
    assert connections > PACKETS // 25 if short else connections <= CONNECTIONS
    assert memory[-1] < MOST_GROWTH * memory[PARTS // 2 - 1]
