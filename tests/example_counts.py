"""How many examples a property test draws: all in long runs, a share of them in `make test`."""

from __future__ import annotations

from hypothesis import settings

WHOLE = 100
"""How many examples a profile draws where a test names no number; fewer make it a short run."""


def examples(count: int) -> int:
    """Return how many of a test's examples are drawn in a run of the current profile."""
    assert settings.default is not None
    return max(5, count * settings.default.max_examples // WHOLE)
