"""One Spark session for all tests of this process; it takes seconds to start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dissector.errors import UsageError
from pipeline.jobs.java_home import find_java
from pipeline.jobs.session import open_session

ROOT = Path(__file__).parents[2]

SETTINGS = {"spark.sql.shuffle.partitions": "2"}


class SharedSession:
    """The session shared by tests, started on first use."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._session: SparkSession | None = None

    def session(self) -> SparkSession:
        """Return the session with its initial settings."""
        if self._session is None:
            self._session = self._open.enter_context(open_session("local[2]", SETTINGS))
        for name, value in SETTINGS.items():
            self._session.conf.set(name, value)
        return self._session

    def close(self) -> None:
        """Stop the session: a process can have only one."""
        self._session = None
        self._open.close()


@pytest.fixture(scope="session")
def shared() -> Iterator[SharedSession]:
    try:
        find_java()
    except UsageError as error:
        pytest.skip(str(error))
    sessions = SharedSession()
    with pytest.MonkeyPatch.context() as patch:
        # Functions of the tests also run in workers, which import nothing from the current folder.
        patch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
        yield sessions
        sessions.close()


@pytest.fixture
def spark(shared: SharedSession) -> SparkSession:
    """The session shared by tests."""
    return shared.session()


@pytest.fixture
def without_session(shared: SharedSession) -> None:
    """No session, for tests with their own sessions."""
    shared.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """
    Run tests on Spark first.

    The short tests at the end can then be divided between processes. Tests with the shared session
    come before those without, so that it is started once.
    """
    items.sort(key=_position)


def _position(item: pytest.Item) -> int:
    if item.get_closest_marker("spark") is None:
        return 2
    return 0 if "spark" in getattr(item, "fixturenames", ()) else 1
