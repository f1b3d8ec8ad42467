"""Fixtures for tests of the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dissector.cli import main
from tests import tcp_captures
from tests.dissector.cli import cli_traffic


class Done(NamedTuple):
    """Output and exit status of a command."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.split("\n")[:-1]]


Run = Callable[..., Done]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process."""

    def command(*words: str | Path) -> Done:
        status = main([str(word) for word in words])
        return Done(status, *capsys.readouterr())

    return command


@pytest.fixture
def good(run: Run) -> Run:
    """Run a command; it must succeed without messages."""

    def command(*words: str | Path) -> Done:
        done = run(*words)
        assert (done.status, done.err) == (0, "")
        return done

    return command


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of `cli_traffic.shop`."""
    path = tmp_path_factory.mktemp("shop") / "shop.pcap"
    tcp_captures.write(path, cli_traffic.shop().packets)
    return path
