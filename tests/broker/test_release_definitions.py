"""Definitions of the newest release equal our declarations."""

from __future__ import annotations

import pytest

from tests.broker import artifacts
from tools.release.__main__ import main

pytestmark = [pytest.mark.broker, pytest.mark.xdist_group("broker")]


def test_the_newest_release_is_declared(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        folder = artifacts.jars("4.x").folder
    except artifacts.MissingError as missing:
        pytest.skip(str(missing))
    status = main([str(folder)])
    out = capsys.readouterr().out
    assert status == 0, out
    assert int(out.split()[-2]) > 250
