"""
Runs a command from a small process; prints status, seconds, peak memory and processor time.

    python -I -S benchmarks/launch.py OUTPUT COMMAND...

A process begins as a copy of its parent, and Linux includes that copy in its peak: `true` had 350
MB when started from a benchmark of 350 MB. Source: Linux, `exec_mmap` in fs/exec.c.
"""

from __future__ import annotations

import os
import sys
import time


def run(output: str, command: list[str]) -> tuple[int, float, int, float]:
    """Return exit status, seconds, peak memory in bytes, and processor time of a command."""
    written = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    files = (
        (os.POSIX_SPAWN_OPEN, 1, output, written, 0o666),
        (os.POSIX_SPAWN_OPEN, 2, os.devnull, written, 0o666),
    )
    begun = time.perf_counter()
    started = os.posix_spawnp(command[0], command, os.environ, file_actions=files)
    _, status, usage = os.wait4(started, 0)
    seconds = time.perf_counter() - begun
    cpu_s = usage.ru_utime + usage.ru_stime
    return os.waitstatus_to_exitcode(status), seconds, usage.ru_maxrss * 1024, cpu_s


if __name__ == "__main__":
    print(*run(sys.argv[1], sys.argv[2:]))
