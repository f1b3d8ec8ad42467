"""One session of Spark for all tests of this process; it takes seconds to start."""

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


class Shared:
    """The session that tests share, from when it is first wanted."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._session: SparkSession | None = None

    def session(self) -> SparkSession:
        """Return the session as it was at first, whatever a test has set."""
        if self._session is None:
            self._session = self._open.enter_context(open_session("local[2]", SETTINGS))
        for name, value in SETTINGS.items():
            self._session.conf.set(name, value)
        return self._session

    def close(self) -> None:
        """End it: there can be only one in a process."""
        self._session = None
        self._open.close()


@pytest.fixture(scope="session")
def shared() -> Iterator[Shared]:
    try:
        find_java()
    except UsageError as error:
        pytest.skip(str(error))
    sessions = Shared()
    with pytest.MonkeyPatch.context() as patch:
        # Functions of the tests run in workers too, which import nothing from the current folder.
        patch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
        yield sessions
        sessions.close()


@pytest.fixture
def spark(shared: Shared) -> SparkSession:
    """The session that tests share."""
    return shared.session()


@pytest.fixture
def alone(shared: Shared) -> None:
    """No session, for tests that open some of their own."""
    shared.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """
    Let tests on Spark come first, and give them more time.

    What is left at the end is short then, and can be divided between processes. Those that want the
    shared session come before those that want none, so that it is started once. And these tests
    have much to start, and share the machine.
    """
    items.sort(key=_turn)
    for item in items:
        if item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.timeout(900))


def _turn(item: pytest.Item) -> int:
    if item.get_closest_marker("spark") is None:
        return 2
    return 0 if "spark" in getattr(item, "fixturenames", ()) else 1
