"""
Builds one extension module for each package with kernels.

`setup.py` builds them for the wheel or checkout; `python -m tools.kernels` rebuilds those with
changed sources.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from setuptools import Extension
from setuptools.command.build_ext import build_ext

from tools.kernels.kernel_sources import ROOT
from tools.kernels.unit import unit_text

PACKAGES = (
    "dissector.capture",
    "dissector.engine",
    "dissector.protocol",
    "dissector.redaction",
    "dissector.values",
    "dissector.view",
    "replay",
    "pipeline",
    "timeline",
)
"""Packages with kernels; `Kernel` looks for compiled ones in their module `_kernels`."""

FOLDER = ROOT / "build" / "kernels"

_FLAGS = [] if sys.platform == "win32" else ["-O3", "-fwrapv", "-fno-strict-aliasing", "-g0", "-w"]


def extensions(packages: tuple[str, ...] = PACKAGES, checked: bool = False) -> list[Extension]:
    """
    Write changed Cython sources of packages, and return their extensions.

    Args:
        packages: The packages.
        checked: Raise IndexError for indices outside of arrays, at the cost of speed.
    """
    suffix = "_checked" if checked else ""
    found = []
    for package in packages:
        source = FOLDER / f"{package.replace('.', '_')}_kernels{suffix}.pyx"
        text = unit_text(package)
        if not source.exists() or source.read_text() != text:
            source.parent.mkdir(parents=True, exist_ok=True)
            source.write_text(text)
        macros: list[tuple[str, str | None]] = [("KK_CHECKED", "1")] if checked else []
        found.append(
            Extension(
                f"{package}._kernels{suffix}",
                [os.path.relpath(source, ROOT)],
                extra_compile_args=_FLAGS,
                define_macros=macros,
            )
        )
    return found


class BuildKernels(build_ext):
    """Builds the extensions: from Python to Cython, to C, to machine code, in parallel."""

    def finalize_options(self) -> None:
        """Translate Cython to C."""
        from Cython.Build import cythonize

        modules = self.distribution.ext_modules or []
        self.distribution.ext_modules = cythonize(modules, quiet=True, language_level=3)
        super().finalize_options()
        self.parallel = self.parallel or os.cpu_count() or 1

    def run(self) -> None:
        """Build what has changed; all are then newer than their sources."""
        super().run()
        for each in self.extensions:
            Path(self.get_ext_fullpath(each.name)).touch()


def build(packages: tuple[str, ...], folder: Path, checked: bool = False) -> None:
    """Build the extensions with changed sources, for packages below a folder."""
    from setuptools import Distribution

    distribution = Distribution({"name": "kernels", "ext_modules": extensions(packages, checked)})
    command = BuildKernels(distribution)
    command.build_lib, command.build_temp = str(folder), str(FOLDER / "objects")
    command.ensure_finalized()
    command.run()
