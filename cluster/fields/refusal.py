"""The error for a captured request that can't be rewritten for the target."""

from __future__ import annotations

from typing import Any


class RewriteError(Exception):
    """
    A captured request can't be rewritten for the target.

    Attributes:
        what: The reason, in one line.
        role: The role of the value that the target has not assigned (the value of a `Role`); empty
            if the reason is another.
        value: The captured value.
    """

    def __init__(self, what: str, role: str = "", value: Any = None) -> None:
        super().__init__(what)
        self.what = what
        self.role = role
        self.value = value


class UnsupportedByTarget(RewriteError):
    """The target has no API, or no version of it, that can carry a captured request."""
