"""How things are timed: whole processes, and calls inside one; the best of several runs."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

KAFKASHARK = (sys.executable, "-m", "dissector")


def process_s(command: tuple[str, ...], output: Path, runs: int = 3) -> float:
    """Return the shortest time of a whole process whose output goes to a file."""
    best = float("inf")
    for _ in range(runs):
        with output.open("wb") as file:
            begun = time.perf_counter()
            subprocess.run(command, stdout=file, stderr=subprocess.DEVNULL, check=True)
            best = min(best, time.perf_counter() - begun)
    return best


def call_us(call: Callable[[], object], least_s: float = 0.3, runs: int = 5) -> float:
    """Return the shortest average time of a call in microseconds."""
    number, passed = 1, 0.0
    while passed < least_s / runs:
        number *= 2
        passed = _run(call, number)
    return min(_run(call, number) for _ in range(runs)) / number * 1e6


def _run(call: Callable[[], object], number: int) -> float:
    begun = time.perf_counter()
    for _ in range(number):
        call()
    return time.perf_counter() - begun
