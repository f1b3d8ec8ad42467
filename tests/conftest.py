"""What tests share."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

from tests.example_counts import WHOLE

# How long an example takes depends on what else the machine does.
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

# The result of a test must not depend on chance: its examples are the same in every run.
# `make test` draws a part of them (`examples`), `make check` all.
settings.register_profile("same", UNHURRIED, derandomize=True, max_examples=30)
settings.register_profile("long", UNHURRIED, derandomize=True, max_examples=WHOLE)

# `make fuzz` looks for new ones, and keeps those that fail.
settings.register_profile(
    "fuzz",
    UNHURRIED,
    max_examples=WHOLE,
    derandomize=False,
    database=DirectoryBasedExampleDatabase(".hypothesis/examples"),
    print_blob=True,
)
settings.load_profile("same")


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
    """Take modules and tests, which live to the end, out of every later garbage collection."""
    gc.freeze()


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """
    Name bytes in a test's name by their number.

    The bytes themselves may hold the time, as gzip's do; workers that collect the tests a second
    apart then do not agree on their names.
    """
    return f"{len(val)}-bytes" if isinstance(val, bytes) else None
