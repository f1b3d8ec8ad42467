"""
Compiles the kernels in advance, so that neither tests nor the first use of a command wait.

The user's cache keeps them. `python -m tools.warm` reads small captures with every command that
has kernels, and compiles each kernel however little data it gets.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path

from dissector.cli import main
from dissector.kernel import call

CAPTURES = [
    str(Path(__file__).parents[1] / "captures" / name)
    for name in (
        "demo.pcap",
        "kafka39-kafka-python-as-0.9.pcap",  # message sets
        "librdkafka-group-cooperative.pcapng",
    )
]

COMMANDS = (
    *((room, form) for room in ("dissect", "pairs", "records") for form in ("ndjson", "parquet")),
    ("dissect", "ndjson", "-Y", "topic == orders and latency_ms > 1"),
    ("dissect", "text", "-V"),
    ("streams", "ndjson"),
    ("stats", "ndjson"),
    ("conform", "ndjson"),
)


def warm() -> None:
    """Run all commands with every kernel compiled."""
    call.COMPILE_FROM = call.LOAD_FROM = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, form, *more in COMMANDS:
            written = ["-T", form, "-o", f"{folder}/out", *more]
            for capture in CAPTURES:
                sys.argv = ["kafkashark", name, capture, *written]
                with contextlib.suppress(SystemExit):
                    main()


if __name__ == "__main__":
    warm()
