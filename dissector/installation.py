"""How this installation gets what it lacks: an extra, or compiled kernels."""

from __future__ import annotations

from pathlib import Path

COMPILER = "Debian: gcc python3-dev; macOS: xcode-select --install"
"""What brings a C compiler and Python's headers."""

IS_CHECKOUT = (Path(__file__).parents[1] / "Makefile").is_file()
"""Whether this is a checkout, where sources may be newer than what was built of them."""


def extra_needed(what: str, extra: str) -> str:
    """Return the line that names the extra that a command, an option or a module needs."""
    return f"{what} needs an extra: pip install 'kafkashark[{extra}]' (in a checkout: make env)"


def compiling() -> str:
    """Return what to do for compiled kernels."""
    # Without `--no-binary` pip installs the wheel that it built, and kept, without a compiler.
    again = "pip install --force-reinstall --no-deps --no-binary kafkashark kafkashark"
    if IS_CHECKOUT:
        again = "make kernels"
    return f"install a C compiler ({COMPILER}), then: {again}"
