"""A Ctrl-C ends a watch as it ends other commands: by its status, without a word of Spark."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from shutil import copy

import pytest

from tests.corpus import FOLDER
from tests.waiting import PATIENCE_S, child, wait_until

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_watch_without_a_traceback(
    without_session: None, tmp_path: Path, number: signal.Signals
) -> None:
    incoming, out = tmp_path / "in", tmp_path / "out"
    incoming.mkdir()
    copy(FOLDER / "demo.pcap", incoming / "a.pcap")
    words = ("--watch", str(incoming), "--out", str(out), "--master", "local[2]")
    command = (sys.executable, "-m", "kafkashark", "pipeline", *words)
    given = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with child(given) as process:
        wait_until((out / "_checkpoint" / "commits" / "0").exists, "the first batch")
        process.send_signal(number)
        printed = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, *printed) == (128 + number, "", "")
