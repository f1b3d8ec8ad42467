"""Clients served by their own captures behave as captured, without a miss."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from serve.report.serve_document import text_lines
from tests.corpus import fast_and_long
from tests.serve.served_scenarios import FAST, LONG, NOT_PLAYED, OTHER_LANGUAGES
from tests.serve.support.scenarios import cassette, play
from tools.record.scenario import all_scenarios

BROKER = [pytest.param(name, marks=pytest.mark.broker) for name in OTHER_LANGUAGES]


@pytest.mark.thinned(3)
@pytest.mark.filterwarnings("ignore:alter_configs has been deprecated:DeprecationWarning")
@pytest.mark.parametrize("name", [*fast_and_long(FAST, LONG), *BROKER])
def test_a_client_behaves_as_captured(name: str, tmp_path: Path) -> None:
    with cassette(name) as served:
        play(name, served.bootstrap, tmp_path)
    assert not served.misses, "\n".join(text_lines(served.report))
    assert not served.report.garbage
    assert served.requests


def test_each_scenario_is_run_or_has_a_reason() -> None:
    played = {*FAST, *LONG, *OTHER_LANGUAGES}
    for name in (each.name for each in all_scenarios()):
        has_reason = any(re.fullmatch(pattern, name) for pattern in NOT_PLAYED)
        assert (name in played) != has_reason, name
