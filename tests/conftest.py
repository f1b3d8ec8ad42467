"""Fixtures and hooks of all tests."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from tests.example_counts import FULL_COUNT

# The duration of an example depends on the load of the machine.
WITHOUT_DEADLINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

# Results of tests must be reproducible: examples are the same in every run.
# `make test` draws a part of them (`examples`), `make check` all.
settings.register_profile("same", WITHOUT_DEADLINE, derandomize=True, max_examples=30)
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


def pytest_configure() -> None:
    """
    Handle the signals that tests send to their child processes, also where they are ignored.

    Shells ignore SIGINT in background processes, and children inherit that: they would never end.
    A handler is not inherited, the children have the default action.
    """
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, None)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler or signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write tests/golden and tests/browse/views anew instead of comparing",
    )


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of public captures and protocol facts beside the project; not part of it."""
    folder = Path(__file__).parents[1] / "../shared"
    if not folder.is_dir():
        pytest.skip("the folder of shared captures is not here")
    return folder


def pytest_xdist_auto_num_workers() -> int:
    """Return one worker more than cores: a sixth of the tests' time is waiting for processes."""
    return (os.cpu_count() or 1) + 1


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
