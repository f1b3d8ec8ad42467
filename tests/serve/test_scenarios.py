"""A client that is served by its own capture behaves as it did, and no request misses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus import fast_and_long
from tests.serve.served_scenarios import FAST, LONG, OTHER_LANGUAGES
from tests.serve.support.scenarios import cassette, play

BROKER = [pytest.param(name, marks=pytest.mark.broker) for name in OTHER_LANGUAGES]


@pytest.mark.filterwarnings("ignore:alter_configs has been deprecated:DeprecationWarning")
@pytest.mark.parametrize("name", [*fast_and_long(FAST, LONG), *BROKER])
def test_a_client_gets_what_it_got(name: str, tmp_path: Path) -> None:
    with cassette(name) as served:
        play(name, served.bootstrap, tmp_path)
    assert not served.misses, "\n".join(served.report.lines())
    assert not served.report.garbage
    assert served.requests
