"""The running stage of a job, on stderr if that is a terminal."""

from __future__ import annotations

import sys
from threading import Event, Thread
from time import monotonic
from types import TracebackType

from pyspark import SparkContext

EVERY_S = 0.5


class Progress:
    """A line rewritten in place: stage, number of finished tasks, and time."""

    def __init__(self, context: SparkContext) -> None:
        self._tracker = context.statusTracker()
        self._begun = monotonic()
        self._stage = ""
        self._over = Event()
        self._thread = Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def set_stage(self, stage: str) -> None:
        """Set the stage that begins."""
        self._stage = stage

    def line(self) -> str:
        """Return the progress of the job."""
        passed = monotonic() - self._begun
        found = [self._tracker.getStageInfo(each) for each in self._tracker.getActiveStageIds()]
        stages = [each for each in found if each is not None]
        done = sum(each.numCompletedTasks for each in stages)
        tasks = sum(each.numTasks for each in stages)
        share = f", {done} of {tasks} tasks" if tasks else ""
        return f"{self._stage}{share}, {passed:.0f} s"

    def _watch(self) -> None:
        while not self._over.wait(EVERY_S):
            print(f"\r\x1b[K{self.line()}", end="", file=sys.stderr, flush=True)
