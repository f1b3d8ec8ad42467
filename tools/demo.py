"""What `make demo` shows: the main commands on a capture that ships with the project."""

from __future__ import annotations

import sys
from pathlib import Path

from dissector.cli import main

CAPTURE = str(Path(__file__).parents[1] / "captures/demo.pcap")

STEPS = (
    ("How long do answers take, and what fails?", ["stats", CAPTURE]),
    ("Which requests failed?", ["pairs", CAPTURE, "-Y", "error"]),
    ("What was produced?", ["records", CAPTURE, "-Y", "api == Produce", "--sort", "time_ns"]),
    ("One request, field by field", ["dissect", CAPTURE, "-V", "-Y", "api == JoinGroup"]),
    ("Does everybody keep to the protocol?", ["conform", CAPTURE]),
    (
        "Does another broker answer the same? (here an embedded one)",
        [
            "replay",
            CAPTURE,
            "--to",
            "mock",
            "--speed",
            "max",
            "--ignore",
            "ApiVersions",
            "--timeout",
            "5",
        ],
    ),
)

LINES = 25
"""Limit of the lines shown for each command."""


def demo() -> int:
    """Run the steps; return the exit status of the first that fails."""
    import contextlib
    import io

    for title, arguments in STEPS:
        shown = [a if " " not in a else f"'{a}'" for a in arguments]
        command = " ".join(shown).replace(CAPTURE, "captures/demo.pcap")
        print(f"\n# {title}\n$ kafkashark {command}\n")
        # Rows are written as bytes.
        out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
        with contextlib.redirect_stdout(out):
            status = main(arguments)
        if status:
            return status
        out.seek(0)
        lines = out.read().splitlines()
        print("\n".join(line[:200] for line in lines[:LINES]))
        if len(lines) > LINES:
            print(f"... {len(lines) - LINES} more lines")
    return 0


if __name__ == "__main__":
    sys.exit(demo())
