"""Prints the table of ratios; above 1 we are faster."""

from __future__ import annotations

import os
import platform
import tempfile
from pathlib import Path

from benchmarks import batches, captures, messages


def main() -> None:
    """Run all benchmarks."""
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n")
    print(f"{'ratio':>7}  {'against':<18} {'what':<44} figures")
    with tempfile.TemporaryDirectory() as folder:
        for rows in (messages.rows(), batches.rows(), captures.rows(Path(folder))):
            for what, peer, ratio, figures in rows:
                print(f"{ratio:>6.2f}x  {peer:<18} {what:<44} {figures}", flush=True)


if __name__ == "__main__":
    main()
