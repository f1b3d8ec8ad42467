"""
`python -m tools.kernels.compiler`: status 1 if this machine can't build the kernels.

Uses Python's own modules only: the Makefile asks before anything is installed.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig

HEADER = b"#include <Python.h>\n"


def can_compile() -> bool:
    """Return whether the C compiler that builds Python's extensions is here, with its headers."""
    command = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    include = sysconfig.get_path("include")
    words = [*command, "-I", include, "-fsyntax-only", "-x", "c", "-"]
    try:
        return subprocess.run(words, input=HEADER, capture_output=True).returncode == 0
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(not can_compile())
