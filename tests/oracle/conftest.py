"""Kafka's own code, started on first use and shared by all tests; counts of comparisons."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.broker import artifacts
from tests.oracle.kafka_classes import Oracle, running

_COMPARED = pytest.StashKey[Counter[tuple[str, str]]]()


@pytest.fixture(scope="session")
def oracles() -> Iterator[list[Oracle]]:
    """Each release line's oracle: the newest Kafka first."""
    with contextlib.ExitStack() as stack:
        try:
            started = [stack.enter_context(running(line)) for line in artifacts.LINES]
        except artifacts.MissingError as missing:
            pytest.skip(str(missing))
        yield started


@pytest.fixture(scope="session")
def compared(pytestconfig: pytest.Config) -> Counter[tuple[str, str]]:
    """Count comparisons by kind and Kafka release."""
    return pytestconfig.stash.setdefault(_COMPARED, Counter())


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the counts of comparisons."""
    compared = config.stash.get(_COMPARED, None)
    if compared:
        terminalreporter.section("compared with Kafka's own code")
        for (what, release), count in sorted(compared.items()):
            terminalreporter.write_line(f"Kafka {release}: {count} {what}")
