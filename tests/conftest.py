"""Fixtures and hooks of all tests."""

from __future__ import annotations

import gc
import os
import signal
import zlib
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from tests.example_counts import FULL_COUNT
from tests.plugins.processor_times import ProcessorTimes
from tools.shares import Share

# The duration of an example depends on the load of the machine.
WITHOUT_DEADLINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

# Results of tests must be reproducible: examples are the same in every run.
# `make test` draws a part of them (`examples`), `make long` all.
settings.register_profile("same", WITHOUT_DEADLINE, derandomize=True, max_examples=10)
settings.register_profile("long", WITHOUT_DEADLINE, derandomize=True, max_examples=FULL_COUNT)

# `make fuzz` searches for new ones, and keeps failing ones.
settings.register_profile(
    "fuzz",
    WITHOUT_DEADLINE,
    max_examples=FULL_COUNT,
    derandomize=False,
    database=DirectoryBasedExampleDatabase(".hypothesis/examples"),
    print_blob=True,
)
settings.load_profile("same")

# Modules of tests/oracle that assert; said before `import_order` imports the first test module.
pytest.register_assert_rewrite("tests.oracle.release_comparison", "tests.oracle.kafka_records")

pytest_plugins = ["tests.plugins.open_sockets", "tests.plugins.import_order"]


def pytest_configure(config: pytest.Config | None = None) -> None:
    """
    Read our options, and handle signals that tests send to child processes.

    Shells ignore SIGINT in background processes, and children inherit that: they would never end.
    A handler is not inherited, the children have the default action.
    """
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, None)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler or signal.SIG_DFL)
    if config is not None and config.getoption("share") is not None:
        try:
            Share.parsed(config.getoption("share"))
        except ValueError as error:
            raise pytest.UsageError(f"--share: {error}") from None
    if config is not None and config.getoption("folders"):
        config.pluginmanager.register(ProcessorTimes())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write tests/golden, views and verdicts of rules anew instead of comparing",
    )
    parser.addoption(
        "--all-cases", action="store_true", help="leave no case of a thinned test to long runs"
    )
    parser.addoption("--share", metavar="3/7", help="run the third of seven shares of the tests")
    parser.addoption(
        "--folders", action="store_true", help="print the time of processors of each folder"
    )


def pytest_report_header(config: pytest.Config) -> str | None:
    share = config.getoption("share")
    return f"share: {share} of the selected tests, by their names" if share else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """
    Mark tests as long, and keep those of one share.

    Each test is in one share, the same in each run.
    """
    if not config.getoption("all_cases"):
        mark_thinned(items)
    for item in items:
        # Programs of others start on a machine that others use: that is no fault of a test.
        is_slow = item.get_closest_marker("broker") or item.get_closest_marker("spark")
        if is_slow and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(1200))
    if config.getoption("share"):
        share = Share.parsed(config.getoption("share"))
        kept = [item for item in items if share.has(item.nodeid)]
        config.hook.pytest_deselected(items=[item for item in items if not share.has(item.nodeid)])
        items[:] = kept


def mark_thinned(items: list[pytest.Item]) -> None:
    """
    Mark the cases of `thinned` tests as long, but for one of several, the same in each run.

    Cases that are long anyway do not count.
    """
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("thinned") and not item.get_closest_marker("long"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, mine in cases.items():
        marker = mine[0].get_closest_marker("thinned")
        assert marker is not None
        (parts,) = marker.args
        first = zlib.crc32(name.encode()) % min(parts, len(mine))
        for number, item in enumerate(mine):
            if (number - first) % parts:
                item.add_marker("long")


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of public captures and protocol facts beside the project; not part of it."""
    folder = Path(__file__).parents[1] / "../shared"
    if not folder.is_dir():
        pytest.skip("the folder of shared captures is not here")
    return folder


def pytest_xdist_auto_num_workers() -> int:
    """
    Return one worker more than cores, as a sixth of the tests' time is waiting for processes.

    On two cores three workers take 258 s, and two, which import all tests once less, 293 s.
    """
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without garbage collections, which find nothing, in a tenth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """Exclude modules and tests, which are never freed, from later garbage collections."""
    gc.freeze()


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """
    Show bytes in test ids by their length.

    The bytes may contain the time, like those of gzip; xdist workers that collect at different
    seconds would then disagree on ids.
    """
    return f"{len(val)}-bytes" if isinstance(val, bytes) else None
