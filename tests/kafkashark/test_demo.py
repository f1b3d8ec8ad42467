"""The demo runs without files of a checkout, and names the packages for more."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from dissector.cli import demo, main

CAPTURE = Path(__file__).parents[2] / "captures" / "demo.pcap"

Captured = pytest.CaptureFixture[str]
Patch = pytest.MonkeyPatch


def good(capsys: Captured, *words: str) -> str:
    """Run a successful command; return its output."""
    assert main([*words]) == 0
    return capsys.readouterr().out


def test_the_demo_capture_equals_that_of_the_repository() -> None:
    assert gzip.decompress(demo.CAPTURE.read_bytes()) == CAPTURE.read_bytes()


def test_the_demo_shows_commands_and_their_output(capsys: Captured, monkeypatch: Patch) -> None:
    monkeypatch.setattr(demo, "find_spec", lambda name: None)
    out = good(capsys, "demo")
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


def test_the_demo_replays_if_the_mock_is_installed(capsys: Captured, monkeypatch: Patch) -> None:
    monkeypatch.setattr(demo, "STEPS", ())
    quick = (*demo.REPLAY[1], "--limit", "20")
    monkeypatch.setattr(demo, "REPLAY", (demo.REPLAY[0], quick))
    out = good(capsys, "demo")
    assert "$ kafkashark replay demo.pcap --to mock" in out
    assert "mock: " in out
    assert "kafkashark[mock]" not in out


def test_the_demo_saves_its_capture(capsys: Captured, tmp_path: Path) -> None:
    file = tmp_path / "captures" / "demo.pcap"
    good(capsys, "demo", "--save", str(file))
    assert file.read_bytes() == CAPTURE.read_bytes()
    assert main(["demo", "--save", str(file)]) == 2
    assert capsys.readouterr().err == f"kafkashark: {file} exists already\n"


def test_a_failing_command_ends_the_demo(capsys: Captured, monkeypatch: Patch) -> None:
    monkeypatch.setattr(demo, "STEPS", [("Wrong", ("pairs", "-Y", "nonsense =="))])
    assert main(["demo"]) == 2
    capsys.readouterr()
