"""
Check that foreign modules do not shadow the packages of kafkashark.

Their names are common: a `pipeline.py` in the current folder would shadow the package `pipeline`.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

_REQUIRED_PACKAGES = {
    "dissector": ("dissector",),
    "replay": ("dissector", "cluster", "replay"),
    "conform": ("dissector", "cluster", "conform"),
    "advise": ("dissector", "timeline", "advise"),
    "findings": ("dissector", "cluster", "timeline", "conform", "advise", "findings"),
    "pipeline": ("dissector", "pipeline"),
    "serve": ("dissector", "cluster", "serve"),
    "record": ("dissector", "cluster", "serve", "record"),
}
"""Package -> all packages that its names in the Python API import, followed by itself."""

_INSTALL_FOLDER = Path(__file__).resolve().parents[1]


def require(package: str) -> None:
    """
    Check that a package and its imports belong to kafkashark, without importing them.

    Raises:
        ForeignModule: Another module has the name; a plain ImportError if it shadows `dissector`.
        ImportError: One of the packages is not installed.
    """
    for name in _REQUIRED_PACKAGES[package]:
        location = _location(name)
        if location and Path(location).resolve().parent == _INSTALL_FOLDER:
            continue
        if not location:
            raise ImportError(f"kafkashark's package {name!r} is not installed", name=name)
        message = (
            f"{location} hides kafkashark's package {name!r}; "
            "rename it, or take its folder off the module search path"
        )
        if name == "dissector":
            raise ImportError(message, name=name)
        from dissector.errors import ForeignModule

        raise ForeignModule(message)


def _location(name: str) -> str:
    """Return the folder of a package, or the file of a module; empty without either."""
    module = sys.modules.get(name)
    spec = find_spec(name) if module is None else module.__spec__
    folders = list((spec and spec.submodule_search_locations) or ())
    file = (spec and spec.origin) or getattr(module, "__file__", None)
    return folders[0] if folders else file or ""
