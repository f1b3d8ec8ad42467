"""Answers about captures from packages above this one, which it finds without importing them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_GROUP = "kafkashark.answers"


def answer_above(name: str) -> Callable[..., Any]:
    """Return a function of the packages above, by the name of its entry point."""
    from importlib.metadata import entry_points  # slow to import

    (found,) = entry_points(group=_GROUP, name=name)
    answer: Callable[..., Any] = found.load()
    return answer
