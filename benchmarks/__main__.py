"""
Prints a table of ratios; above 1 kafkashark is faster.

    python -m benchmarks                      # all of them
    python -m benchmarks commands damaged     # some, by name
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from benchmarks import (
    damaged_pairs,
    hostile_captures,
    layouts,
    message_commands,
    pipeline,
    pipeline_growth,
    recorded_traffic,
    replay,
    screen,
    whole_commands,
)
from benchmarks.functions import (
    batches,
    message_codecs,
    record_columns,
    tls_plaintext,
    values_by_schema,
)
from benchmarks.timing import Row

ROWS: Mapping[str, Callable[[Path], Iterator[Row]]] = {
    "codecs": lambda _: message_codecs.rows(),
    "batches": lambda _: batches.rows(),
    "records": lambda _: record_columns.rows(),
    "values": lambda _: values_by_schema.rows(),
    "hooks": values_by_schema.hook_rows,
    "start": whole_commands.start_rows,
    "commands": whole_commands.rows,
    "damaged": damaged_pairs.rows,
    "messages": message_commands.rows,
    "layouts": layouts.layout_rows,
    "short": layouts.short_rows,
    "many": layouts.many_rows,
    "http": layouts.http_rows,
    "gro": layouts.gro_rows,
    "hostile": hostile_captures.rows,
    "tls": tls_plaintext.rows,
    "recording": recorded_traffic.rows,
    "logs": whole_commands.log_rows,
    "replay": replay.rows,
    "screen": screen.rows,
    "pipeline": pipeline.rows,
    "growth": pipeline_growth.rows,
}
"""The groups of rows."""


def main() -> None:
    """Run all benchmarks, or those named by arguments."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Print ratios.")
    parser.add_argument(
        "names", nargs="*", choices=[[], *ROWS], metavar="NAME", help=f"of {', '.join(ROWS)}"
    )
    names = parser.parse_args().names or list(ROWS)
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}\n")
    print(f"{'ratio':>8} {'target':>8}  {'against':<20} {'what':<44} figures")
    for name in names:
        begun = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            for what, peer, ratio, figures, target in ROWS[name](Path(folder)):
                wanted = "" if target is None else f"{target:.2f}x"
                print(f"{ratio:>7.2f}x {wanted:>8}  {peer:<20} {what:<44} {figures}", flush=True)
        print(f"{'':>18}  {name}: {time.monotonic() - begun:,.0f} s", flush=True)


if __name__ == "__main__":
    main()
