"""Timing of whole processes, and of calls inside one; the best of several runs."""

from __future__ import annotations

import atexit
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Container, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

KAFKASHARK = (sys.executable, "-m", "dissector")
_LAUNCH = Path(__file__).with_name("launch.py")


class Row(NamedTuple):
    """
    A line of the table.

    Attributes:
        what: Timed work.
        peer: Compared work.
        ratio: The peer's time (or memory) divided by ours.
        figures: Measured values.
        target: Target of the ratio, if any.
    """

    what: str
    peer: str
    ratio: float
    figures: str
    target: float | None = None


class Run(NamedTuple):
    """Resources of a process: seconds, peak resident memory, seconds of processor."""

    seconds: float
    peak_bytes: int
    cpu_s: float


def peak_memory(pid: int) -> int:
    """
    Return the peak memory of a running process.

    `ru_maxrss` would have that of this process too, whose copy the other began as; see `launch`.
    """
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024


def process(
    command: Sequence[str],
    output: Path | None = None,
    runs: int = 3,
    statuses: Container[int] = (0,),
) -> Run:
    """
    Return the shortest run of a process; its output goes to a file or is discarded.

    Raises:
        CalledProcessError: The exit status is none of `statuses`.
    """
    done = (_process(command, output or Path(os.devnull), statuses=statuses) for _ in range(runs))
    return min(done)


def first_runs(command: Sequence[str], runs: int) -> list[Run]:
    """Return the first runs of a process on a machine with empty caches."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**caching_environment(), "PYTHONPYCACHEPREFIX": folder}
        return [_process(command, Path(os.devnull), environment) for _ in range(runs)]


def _process(
    command: Sequence[str],
    output: Path,
    environment: Mapping[str, str] | None = None,
    statuses: Container[int] = (0,),
) -> Run:
    launch = (sys.executable, "-I", "-S", str(_LAUNCH), str(output), *command)
    fields = subprocess.run(
        launch, stdout=subprocess.PIPE, env=environment or caching_environment(), check=True
    ).stdout
    status, seconds, peak_bytes, cpu_s = fields.split()
    if int(status) not in statuses:
        raise subprocess.CalledProcessError(int(status), command)
    return Run(float(seconds), int(peak_bytes), float(cpu_s))


@cache
def caching_environment() -> dict[str, str]:
    """Return an environment in which Python caches compiled modules, as for installed ones."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": folder.name}


def call_us(
    call: Callable[[], object],
    least_s: float = 0.3,
    runs: int = 5,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Return the shortest average time of a call in microseconds, by a clock in seconds."""
    number, passed = 1, 0.0
    while passed < least_s / runs:
        number *= 2
        passed = _run(call, number, clock)
    return min(_run(call, number, clock) for _ in range(runs)) / number * 1e6


def _run(call: Callable[[], object], number: int, clock: Callable[[], float]) -> float:
    begun = clock()
    for _ in range(number):
        call()
    return clock() - begun
