"""Number of examples of property tests: all in long runs, a share in `make test`."""

from __future__ import annotations

from hypothesis import settings

FULL_COUNT = 100
"""Examples per test in full profiles; a profile with fewer is a short run."""


def examples(count: int) -> int:
    """Return the number of examples in the current profile."""
    assert settings.default is not None
    return max(5, count * settings.default.max_examples // FULL_COUNT)
