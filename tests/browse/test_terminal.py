"""The screen in a real terminal, by tmux."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.browse.screens import DEMO
from tests.waiting import wait_until

pytestmark = pytest.mark.long


class Terminal:
    """A terminal running a command."""

    def __init__(self, socket: Path) -> None:
        self._tmux = ("tmux", "-S", str(socket), "-f", "/dev/null")

    def start(self, command: str) -> None:
        self._run("new-session", "-d", "-s", "test", "-x", "100", "-y", "30", command)

    def press(self, *keys: str) -> None:
        self._run("send-keys", "-t", "test", *keys)

    def shown(self) -> str:
        return self._run("capture-pane", "-p", "-t", "test")

    def close(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], check=False, capture_output=True)

    def until(self, condition: Callable[[str], bool]) -> str:
        wait_until(lambda: condition(self.shown()), self.shown())
        return self.shown()

    def _run(self, *words: str) -> str:
        return subprocess.run(
            [*self._tmux, *words], check=True, capture_output=True, text=True
        ).stdout


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    found = Terminal(tmp_path / "tmux")
    yield found
    found.close()


def command(words: str) -> str:
    program = shlex.join([sys.executable, "-m", "kafkashark"])
    return f"{words.format(program=program, demo=shlex.quote(str(DEMO)))}; echo ended with $?; cat"


@pytest.mark.parametrize("words", ["{program} browse {demo}", "cat {demo} | {program} browse -"])
def test_a_capture_on_a_terminal(
    words: str, terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    terminal.start(command(words))
    terminal.until(lambda text: "281 exchanges" in text)
    terminal.press("Home")
    terminal.until(lambda text: " 1/281 exchanges" in text)
    terminal.press("Down", "Down")
    terminal.until(lambda text: " 3/281 exchanges" in text)
    terminal.press("/")
    terminal.press("-l", "api == Produce")
    terminal.press("Enter")
    terminal.until(lambda text: "53 of 281 exchanges" in text)
    terminal.press("q")
    text = terminal.until(lambda text: "ended with" in text)
    assert "ended with 0" in text
    assert "Traceback" not in text


def test_a_key_log_is_added_on_the_screen(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    capture = DEMO.parent / "kafka4-java-tls13.pcap.gz"
    terminal.start(command(f"{{program}} browse {shlex.quote(str(capture))}"))
    terminal.until(lambda text: "4 TLS connections, none readable: K adds a key log" in text)
    terminal.press("K")
    terminal.press("-l", str(DEMO.parent / "kafka4-java-tls13.keylog"))
    terminal.press("Enter")
    text = terminal.until(lambda text: "exchanges" in text and "connections" not in text)
    assert "ApiVersions" in text
    terminal.press("q")
    assert "ended with 0" in terminal.until(lambda text: "ended with" in text)
