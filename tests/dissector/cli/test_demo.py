"""The demo runs without files of a checkout, and says what an extra would add."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from dissector.cli import demo
from tests.dissector.cli.conftest import Run

CAPTURE = Path(__file__).parents[3] / "captures" / "demo.pcap"


def test_its_capture_is_that_of_the_repository() -> None:
    assert gzip.decompress(demo.CAPTURE.read_bytes()) == CAPTURE.read_bytes()


def test_it_shows_commands_and_their_output(good: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "find_spec", lambda name: None)
    out = good("demo").out
    commands = [line for line in out.splitlines() if line.startswith("$ kafkashark ")]
    assert [line.split()[2] for line in commands] == [
        "stats",
        "pairs",
        "records",
        "dissect",
        "conform",
    ]
    assert "Per API" in out
    assert "JoinGroup v5 request, 147 bytes" in out
    assert "rules were judged" in out
    assert "pip install 'kafkashark[mock]'" in out
    assert str(demo.CAPTURE) not in out


def test_it_replays_where_the_mock_is(good: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "STEPS", ())
    quick = (*demo.REPLAY[1], "--limit", "20")
    monkeypatch.setattr(demo, "REPLAY", (demo.REPLAY[0], quick))
    out = good("demo").out
    assert "$ kafkashark replay demo.pcap --to mock" in out
    assert "mock: " in out
    assert "kafkashark[mock]" not in out


def test_its_capture_is_saved(good: Run, run: Run, tmp_path: Path) -> None:
    file = tmp_path / "captures" / "demo.pcap"
    good("demo", "--save", str(file))
    assert file.read_bytes() == CAPTURE.read_bytes()
    done = run("demo", "--save", str(file))
    assert (done.status, done.err) == (2, f"kafkashark: {file} exists already\n")


def test_a_failing_command_ends_it(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "STEPS", [("Wrong", ("pairs", "-Y", "nonsense =="))])
    assert run("demo").status == 2
