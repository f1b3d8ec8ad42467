"""
pytest plugin with the fixture `kafka_recording`.

    def test_orders(kafka_recording):
        recording = kafka_recording("orders.pcapng", to="broker:9092")
        consume(recording.bootstrap)

The first run records the traffic with the cluster; later runs are served from the recording.

pytest imports this module in every run with kafkashark installed, so other imports are delayed
until a test uses the fixture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from record.public import Recorder
    from serve.public import Cassette

ONCE, ALL, NONE = "once", "all", "none"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option `--kafka-record`."""
    parser.getgroup("kafkashark").addoption(
        "--kafka-record",
        choices=(ONCE, ALL, NONE),
        default=ONCE,
        help="When kafka_recording records: if the file is missing (once), always (all), or never "
        "(none: a missing file fails the test).",
    )


@pytest.fixture
def kafka_recording(
    request: pytest.FixtureRequest, kafka_cassette: Callable[..., Cassette]
) -> Iterator[Callable[..., Recorder | Cassette]]:
    """
    Return a function that records a cluster, or serves an earlier recording.

    Its arguments are the file, relative to the folder of the test, and `to="HOST:PORT"`; more are
    those of `Recorder`. The result has `bootstrap`. A request that an earlier recording lacks
    fails the test.
    """
    when = request.config.getoption("--kafka-record")
    with ExitStack() as stack:

        def start(file: str | Path, *, to: str, **options: Any) -> Recorder | Cassette:
            path = request.path.parent / file
            if when == NONE and not path.exists():
                pytest.fail(f"{path}: no recording, and --kafka-record is {NONE}", pytrace=False)
            if when == ALL or not path.exists():
                from record.public import Recorder

                return stack.enter_context(Recorder(path, to=to, **options))
            return kafka_cassette(path)

        yield start
