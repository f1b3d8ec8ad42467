"""
`--folders`: where the tests spend the time of processors.

The time of the clock depends on what else runs.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator

import pytest

DEPTH = 3
"""Levels of folders that are told apart, with `tests`."""


def used_s() -> float:
    """Return the processor time of this process and its ended children, in seconds."""
    return sum(os.times()[:4])


class ProcessorTimes:
    """Sums the time of tests and their fixtures by folder, also that of xdist's workers."""

    def __init__(self) -> None:
        self._before = used_s()
        self._of: Counter[str] = Counter()
        self._tests: Counter[str] = Counter()

    def pytest_collection_finish(self) -> None:
        """Leave out the collection."""
        self._before = used_s()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Add what was used since the last report; attributes reach the process that prints."""
        report = yield
        now = used_s()
        vars(report)["processor_s"] = now - self._before
        self._before = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        folder = "/".join(report.nodeid.partition("::")[0].split("/")[:-1][:DEPTH])
        self._of[folder] += vars(report)["processor_s"]
        self._tests[folder] += report.when == "call"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the folders, the most expensive first."""
        terminalreporter.section("processor time by folder")
        for folder, seconds in self._of.most_common():
            terminalreporter.line(f"{seconds:8.1f} s {self._tests[folder]:6} tests  {folder}")
        terminalreporter.line(f"{self._of.total():8.1f} s {self._tests.total():6} tests")
