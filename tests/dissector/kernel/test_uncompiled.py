"""Commands without compiled kernels."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from dissector.kernel.call import CHECKED
from tools.kernels.compiler import can_compile

WITHOUT_KERNELS = """
import sys
from dissector.kernel import call
call.NOTICE_SECONDS = {seconds}
for package in ("capture", "engine", "protocol", "view"):
    sys.modules[f"dissector.{{package}}._kernels"] = None
from dissector.__main__ import main
sys.exit(main())
"""

OUTDATED = """
import math
import sys
from dissector.kernel import call
call.NOTICE_SECONDS = 0
call._changed_ns = lambda path: math.inf if path.suffix == ".py" else 0
from dissector.__main__ import main
sys.exit(main())
"""

WORDS = ("pairs", "--bodies", "-T", "ndjson", "captures/kafka39-sweep-too-new.pcap")


def run(*start: str) -> subprocess.CompletedProcess[str]:
    environment = {name: each for name, each in os.environ.items() if name != CHECKED}
    words = [sys.executable, *start, *WORDS]
    return subprocess.run(words, capture_output=True, check=True, text=True, env=environment)


@pytest.mark.long
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


@pytest.mark.skipif(not can_compile(), reason="no compiler builds kernels here")
def test_kernels_older_than_their_sources_run_as_python() -> None:
    outdated = run("-c", OUTDATED)
    assert outdated.stdout == run("-m", "dissector").stdout
    (line,) = outdated.stderr.splitlines()
    assert line.startswith("kafkashark: the kernels are older than their sources")
    assert line.endswith(": make kernels")
