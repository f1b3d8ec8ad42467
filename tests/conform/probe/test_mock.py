"""Violations of librdkafka's mock cluster are known and explained."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conform.probe.explained_mock import KILLED, MOCK, SLOW
from tests.conform.probe.scripts import LIVE

WAITS = "P29"
"""Kept, but a fetch behind the end waits for seconds."""

ROOT = Path(__file__).parents[3]


def _probed(*ids: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.conform.probe.mock_probe", *ids]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False
    )


@pytest.mark.long
def test_violations_of_the_mock_are_explained() -> None:
    done = _probed(*sorted(LIVE.keys() - KILLED.keys() - SLOW.keys() - {WAITS}))
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.splitlines()) == MOCK.keys()


@pytest.mark.long
def test_the_mock_refuses_offsets_out_of_range() -> None:
    done = _probed(WAITS)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


@pytest.mark.long
@pytest.mark.parametrize("rule", sorted(KILLED))
def test_rules_that_crash_the_mock_are_known(rule: str) -> None:
    assert _probed(rule).returncode == -signal.SIGABRT
