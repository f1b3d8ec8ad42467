"""
Sections of a report: one that fails, or reaches its budget, is named; the others go on.

The figures of a section need some seconds and some MB for a million packets, so the budget is far
above that of any capture. It bounds the harm of a fault in one section.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import process_time
from typing import TypeVar

from dissector.errors import DissectorError, bug_location

Result = TypeVar("Result")

_PEAK_UNIT = 1 if sys.platform == "darwin" else 1024
"""Bytes of a unit of `ru_maxrss`."""


@dataclass(frozen=True, slots=True)
class SectionBudget:
    """
    The budget of one section.

    Attributes:
        seconds: Processor time, for any capture.
        seconds_per_mib: Additional processor time for each MiB of the capture.
        peak_bytes: Growth of the memory that the process took at most.
    """

    seconds: float = 60.0
    seconds_per_mib: float = 4.0
    peak_bytes: int = 2 << 30


@dataclass(slots=True)
class _Use:
    seconds: float = 0.0
    peak_bytes: int = 0


@dataclass
class Sections:
    """
    Runs the work of sections, and measures it.

    Attributes:
        budget: The budget of each section.
        read_bytes: Bytes of messages read so far.
        notes: Section -> why it is incomplete.
        bugs: Section -> the bug in kafkashark, if it failed.
    """

    budget: SectionBudget = field(default_factory=SectionBudget)
    read_bytes: int = 0
    notes: dict[str, str] = field(default_factory=dict)
    bugs: dict[str, str] = field(default_factory=dict)
    _uses: dict[str, _Use] = field(default_factory=dict)

    def is_stopped(self, name: str) -> bool:
        """Return whether a section failed or reached its budget."""
        return name in self.notes

    def run(self, name: str, work: Callable[[], Result], default: Result) -> Result:
        """Return the result of work for a section; the default if it fails, or has failed."""
        if name in self.bugs:
            return default
        try:
            with self.measuring(name):
                return work()
        except DissectorError:
            raise
        except Exception as error:
            self.fail(name, error)
            return default

    def feed(self, name: str, work: Callable[[], None]) -> None:
        """Do work for a section, unless it is stopped."""
        if not self.is_stopped(name):
            self.run(name, work, None)

    def fail(self, name: str, error: Exception) -> None:
        """Record that the work of a section raised an exception."""
        # The text of an exception may contain secrets of the capture.
        self.bugs[name] = f"{type(error).__name__} in {bug_location(error)}"
        self.notes[name] = f"Incomplete because of a bug in kafkashark: {self.bugs[name]}."

    @contextmanager
    def measuring(self, name: str) -> Iterator[None]:
        """Add the processor time and the memory of the work inside to the use of a section."""
        begin_s, begin_bytes = process_time(), _peak_bytes()
        try:
            yield
        finally:
            use = self._uses.setdefault(name, _Use())
            use.seconds += process_time() - begin_s
            use.peak_bytes += _peak_bytes() - begin_bytes
            self._check(name, use)

    def _check(self, name: str, use: _Use) -> None:
        budget = self.budget
        allowed_s = budget.seconds + budget.seconds_per_mib * self.read_bytes / (1 << 20)
        reached = ""
        if use.seconds > allowed_s:
            reached = f"{allowed_s:,.0f} s of processor time"
        elif use.peak_bytes > budget.peak_bytes:
            reached = f"{budget.peak_bytes >> 20:,} MiB of memory"
        if reached:
            self.notes.setdefault(
                name, f"Incomplete: this section reached its budget of {reached}."
            )


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _PEAK_UNIT
