"""Builds the kernels, and the description for PyPI; all else is in pyproject.toml."""

import re
import sys
from pathlib import Path

from setuptools import setup

sys.path.insert(0, str(Path(__file__).parent))

from tools.kernels.compiler import can_compile
from tools.kernels.extensions import BuildKernels, extensions

ROOT = Path(__file__).parent

FILES = "https://github.com/kafkashark/kafkashark/blob/main/"

RELATIVE_IMAGE = re.compile(r"(!\[[^\]]*\]\()(?!https?://)([^)]+)\)")

RELATIVE_LINK = re.compile(r"(?<=\]\()(?!https?://|#)")


def description() -> str:
    """Return README, with links to files of the repository that work everywhere."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return RELATIVE_LINK.sub(FILES, RELATIVE_IMAGE.sub(rf"\1{FILES}\2?raw=true)", text))


setup(
    long_description=description(),
    long_description_content_type="text/markdown",
    # Without a compiler the kernels run as Python, and the wheel is `py3-none-any`: no index and no
    # cache takes it for a compiled one.
    ext_modules=extensions() if can_compile() else [],
    cmdclass={"build_ext": BuildKernels},
)
