"""Commands without compiled kernels."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from dissector.kernel.call import CHECKED

WITHOUT_KERNELS = """
import sys
from dissector.kernel import call
call.NOTICE_SECONDS = {seconds}
for package in ("capture", "engine", "protocol", "view"):
    sys.modules[f"dissector.{{package}}._kernels"] = None
from dissector.__main__ import main
sys.exit(main())
"""

WORDS = ("pairs", "--bodies", "-T", "ndjson", "captures/kafka39-sweep-too-new.pcap")


def run(*start: str) -> subprocess.CompletedProcess[str]:
    environment = {name: each for name, each in os.environ.items() if name != CHECKED}
    words = [sys.executable, *start, *WORDS]
    return subprocess.run(words, capture_output=True, check=True, text=True, env=environment)


@pytest.mark.parametrize(("seconds", "notices"), [(0, 1), (1e9, 0)])
def test_kernels_that_are_not_compiled_are_reported_once_they_cost_time(
    seconds: float, notices: int
) -> None:
    compiled = run("-m", "dissector")
    uncompiled = run("-c", WITHOUT_KERNELS.format(seconds=seconds))
    assert uncompiled.stdout == compiled.stdout
    assert compiled.stderr == ""
    lines = uncompiled.stderr.splitlines()
    assert len(lines) == notices
    for line in lines:
        assert line.startswith("kafkashark: the kernels are not compiled")
        assert line.endswith("then: make kernels")
