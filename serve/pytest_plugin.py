"""
pytest plugin with the fixture `kafka_cassette`.

    def test_orders(kafka_cassette):
        cassette = kafka_cassette("orders.pcap")
        consume(cassette.bootstrap)
        assert cassette.requests

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
    from serve.public import Cassette


@pytest.fixture
def kafka_cassette(request: pytest.FixtureRequest) -> Iterator[Callable[..., Cassette]]:
    """
    Return a function that serves captures until the end of the test.

    Relative paths start at the folder of the test. Options are those of `Cassette`, but `strict` is
    true by default: misses fail the test at its end.
    """
    with ExitStack() as stack:
        served: list[Cassette] = []

        def serve(*captures: Any, strict: bool = True, **options: Any) -> Cassette:
            from serve.public import Cassette

            found = [_beside(request.path, each) for each in captures]
            cassette = stack.enter_context(Cassette(*found, strict=strict, **options))
            if strict:
                served.append(cassette)
            return cassette

        yield serve
    # Clients that got no records are misses only when nothing comes any more.
    missed = [cassette for cassette in served if cassette.misses]
    if missed:
        from serve.report.serve_document import text_lines

        lines = [line for cassette in missed for line in text_lines(cassette.report)]
        pytest.fail("\n".join(lines), pytrace=False)


def _beside(test: Path, capture: Any) -> Any:
    """Resolve a path against the folder of the test, unless it exists."""
    if not isinstance(capture, str | Path) or Path(capture).exists():
        return capture
    return test.parent / capture
