"""Builds the kernels; all else is in pyproject.toml."""

import sys
from pathlib import Path

from setuptools import setup

sys.path.insert(0, str(Path(__file__).parent))

from tools.kernels.extensions import BuildKernels, extensions

setup(ext_modules=extensions(), cmdclass={"build_ext": BuildKernels})
