"""Prints the table of ratios; above 1 we are faster."""

from __future__ import annotations

import os
import platform
import tempfile
from pathlib import Path

from benchmarks import (
    batches,
    damaged_pairs,
    message_codecs,
    pipeline,
    record_columns,
    replay,
    screen,
    tls_plaintext,
    whole_commands,
)


def main() -> None:
    """Run all benchmarks."""
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n")
    print(f"{'ratio':>8} {'target':>8}  {'against':<20} {'what':<44} figures")
    with tempfile.TemporaryDirectory() as folder:
        for rows in (
            message_codecs.rows(),
            batches.rows(),
            record_columns.rows(),
            tls_plaintext.rows(Path(folder)),
            whole_commands.rows(Path(folder)),
            damaged_pairs.rows(Path(folder)),
            replay.rows(Path(folder)),
            screen.rows(Path(folder)),
            pipeline.rows(Path(folder)),
        ):
            for what, peer, ratio, figures, target in rows:
                wanted = "" if target is None else f"{target:.2f}x"
                print(f"{ratio:>7.2f}x {wanted:>8}  {peer:<20} {what:<44} {figures}", flush=True)


if __name__ == "__main__":
    main()
