"""What tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes depends on what else the machine does. What CI says of a commit must
# not depend on chance: there the examples are always the same, everywhere else new ones.
settings.register_profile(
    "unhurried",
    deadline=None,
    derandomize=os.environ.get("CI") == "true",
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("unhurried")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write tests/golden anew instead of comparing"
    )


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of public captures and protocol facts beside the project; not part of it."""
    folder = Path(__file__).parents[1] / "../shared"
    if not folder.is_dir():
        pytest.skip("the folder of shared captures is not here")
    return folder


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """
    Name bytes in a test's name by their number.

    The bytes themselves may hold the time, as gzip's do; workers that collect the tests a second
    apart then do not agree on their names.
    """
    return f"{len(val)}-bytes" if isinstance(val, bytes) else None
