"""`python -m tools.kernels [--checked]`: builds the kernels of the checkout and of its tests."""

from __future__ import annotations

import argparse

from tools.kernels.extensions import PACKAGES, build
from tools.kernels.sources import ROOT

parser = argparse.ArgumentParser(prog="tools.kernels", description=__doc__)
parser.add_argument("--checked", action="store_true", help="check all indices (KAFKASHARK_CHECKED)")
build((*PACKAGES, "tests"), ROOT, parser.parse_args().checked)
