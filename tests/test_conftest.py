"""Signals of tests reach their child processes."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

NUMBERS = (signal.SIGINT, signal.SIGTERM)

SCRIPT = """
import subprocess, sys
from tests.conftest import pytest_configure
pytest_configure()
ask = "import signal, sys; print([int(signal.getsignal(n) is signal.SIG_IGN) for n in (2, 15)])"
print(subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True).stdout)
"""


@pytest.mark.parametrize("ignored", [(), (signal.SIGINT,), NUMBERS])
def test_children_do_not_inherit_ignored_signals(ignored: tuple[signal.Signals, ...]) -> None:
    """As where `make test` runs in the background of a shell."""

    def ignore() -> None:
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)

    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=Path(__file__).parents[1],
        preexec_fn=ignore,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[0, 0]"
