"""
Runs commands on a capture in this process, with bounded memory: one JSON row for each on stdout.

    python -m tests.kafkashark.extreme_commands CAPTURE FOLDER
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from dissector.cli import main
from serve.public import Cassette

_ADDRESS_BYTES = 4 << 30
"""A limit for the case of a fault: without it the system would end other processes too."""

COMMANDS = (
    ("conform",),
    ("advise",),
    ("report", "--events", "all", "--conform", "all"),
    ("timeline",),
    ("timeline", "-T", "perfetto"),
    ("groups",),
    ("stats",),
    ("streams",),
    ("upgrade", "--to", "4.0", "--internal"),
    ("records", "-T", "ndjson"),
    ("pairs", "--bodies", "-T", "ndjson"),
    ("dissect", "-V"),
    ("dissect", "-T", "parquet"),
    ("export", "--redact"),
    ("replay", "--dry-run"),
)


def run(path: str, folder: Path) -> Iterator[dict[str, object]]:
    """Yield status, messages and peak memory after each command."""
    for command in COMMANDS:
        output = [] if command[0] == "replay" else ["-o", str(folder / "out")]
        messages = StringIO()
        with redirect_stderr(messages), redirect_stdout(StringIO()):
            status = main([command[0], path, *command[1:], *output])
        yield _row(" ".join(command), status, messages.getvalue())
    with Cassette(path):
        pass
    yield _row("serve", 0, "")


def _row(command: str, status: int, messages: str) -> dict[str, object]:
    return {"command": command, "status": status, "messages": messages, "peak": _peak_bytes()}


def _peak_bytes() -> int:
    """Return the peak of this program; that of `getrusage` begins with its parent's on Linux."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(each for each in status.read_text().splitlines() if each.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


if __name__ == "__main__":
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_BYTES, hard))
    for row in run(sys.argv[1], Path(sys.argv[2])):
        print(json.dumps(row), flush=True)
