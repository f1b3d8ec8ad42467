"""`python -m tools.kernels [--checked]`: builds the kernels of the checkout and of its tests."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec

parser = argparse.ArgumentParser(prog="tools.kernels", description=__doc__)
parser.add_argument("--checked", action="store_true", help="check all indices (KAFKASHARK_CHECKED)")
options = parser.parse_args()
for name in ("setuptools", "Cython"):
    if find_spec(name) is None:
        sys.exit(
            f"tools.kernels: {name} is missing; run: {sys.executable} -m pip install -e '.[dev]'"
        )

from tools.kernels.extensions import PACKAGES, build  # noqa: E402 - needs what is checked above
from tools.kernels.kernel_sources import ROOT  # noqa: E402

build((*PACKAGES, "tests"), ROOT, options.checked)
