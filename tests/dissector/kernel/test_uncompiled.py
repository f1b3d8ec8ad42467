"""Commands without compiled kernels."""

from __future__ import annotations

import os
import subprocess
import sys

from dissector.kernel.call import CHECKED

WITHOUT_KERNELS = """
import sys
for package in ("dissector.capture", "dissector.engine", "dissector.view"):
    sys.modules[package + "._kernels"] = None
from dissector.__main__ import main
sys.exit(main())
"""


def test_missing_compiled_kernels_are_reported_once() -> None:
    environment = {name: each for name, each in os.environ.items() if name != CHECKED}
    words = ["pairs", "--bodies", "-T", "ndjson", "captures/kafka39-sweep-too-new.pcap"]
    runs = [
        subprocess.run(
            [sys.executable, *start, *words],
            capture_output=True,
            check=True,
            text=True,
            env=environment,
        )
        for start in (["-c", WITHOUT_KERNELS], ["-m", "dissector"])
    ]
    assert runs[0].stdout == runs[1].stdout
    (line,) = runs[0].stderr.splitlines()
    assert "the kernels are not compiled; large captures are slow: install a C compiler" in line
    assert runs[1].stderr == ""
