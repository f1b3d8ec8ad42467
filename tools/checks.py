"""
Runs the parts of `make check` side by side: `python -m tools.checks [--share] LANE...`.

A lane, such as `lint,test`, is a list of targets of the Makefile, one after the other; lanes run at
the same time. The output of a part is printed when it ends, and kept in `build/checks`; at the end
stands how long each took, and how much time of processors it used. With `--share`, parts that are
too long for each commit run only the share of its date.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tools import shares
from tools.shares import Share

ROOT = Path(__file__).parents[1]

WHOLE = ("lint", "test")
"""The parts that are the same each time."""


class Part(NamedTuple):
    """A part that has ended."""

    name: str
    status: int
    """Exit status."""
    elapsed_s: float
    processor_s: float
    """Time of processors, of all processes that it waited for."""

    def __str__(self) -> str:
        used = f"{self.name} {_minutes(self.elapsed_s)} ({_minutes(self.processor_s)})"
        return f"{used} FAILED" if self.status else used


@dataclass
class Checks:
    """A run of all lanes."""

    folder: Path
    """Where the Makefile is."""
    share: Share | None = None
    """The share of the parts that are not always whole; None for all of them."""
    ended: list[Part] = field(default_factory=list)
    _is_stopped: bool = False
    _output: threading.Lock = field(default_factory=threading.Lock)

    def run(self, lanes: Sequence[Sequence[str]]) -> bool:
        """Run lanes at the same time, all parts of each; return whether all parts passed."""
        start = time.monotonic()
        with ThreadPoolExecutor(len(lanes)) as pool:
            try:
                list(pool.map(self._run_lane, lanes))
            finally:
                # After Ctrl-C, which the running parts get too.
                self._is_stopped = True
        print(", ".join(map(str, self.ended)))
        print(f"{_minutes(time.monotonic() - start)} in all; in brackets: time of processors")
        if self.share is not None:
            print(_told(self.share))
        return all(part.status == 0 for part in self.ended)

    def _run_lane(self, names: Sequence[str]) -> None:
        for name in names:
            if not self._is_stopped:
                self._run_part(name)

    def _run_part(self, name: str) -> None:
        with self._output:
            print(f"{name}: started", flush=True)
        log = self.folder / "build" / "checks" / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        start = time.monotonic()
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["make", "--no-print-directory", name, *self._variables(name)],
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        used = usage.ru_utime + usage.ru_stime
        part = Part(name, process.returncode, time.monotonic() - start, used)
        with self._output:
            self.ended.append(part)
            print(f"\n======== {part}\n{log.read_text(errors='replace')}", flush=True)

    def _variables(self, name: str) -> list[str]:
        """Return the variables of the Makefile for a part; each core has one process of a lane."""
        share = [] if self.share is None or name in WHOLE else [f"SHARE={self.share}"]
        return [f"WORKERS={os.cpu_count() or 1}", *share]


def main(words: Sequence[str] | None = None, folder: Path = ROOT) -> int:
    """Run the lanes; return 1 if a part failed."""
    parser = argparse.ArgumentParser(prog="tools.checks", description=__doc__)
    parser.add_argument("--share", action="store_true", help="the share of the commit's date")
    parser.add_argument("lanes", nargs="+", metavar="LANE", help="targets, separated by commas")
    options = parser.parse_args(words)
    checks = Checks(folder)
    if options.share:
        checks.share = shares.of_commit(folder)
        print(_told(checks.share), flush=True)
    return 0 if checks.run([lane.split(",") for lane in options.lanes]) else 1


def _told(share: Share) -> str:
    whole = " and ".join(WHOLE)
    return f"share {share.number} of {share.parts} of all but {whole}; `make full` runs everything"


def _minutes(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02}"


if __name__ == "__main__":
    sys.exit(main())
