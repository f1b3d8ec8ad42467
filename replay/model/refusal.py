"""Why a captured request is not sent."""

from __future__ import annotations

from typing import Any


class RewriteError(Exception):
    """
    A captured request can't be turned into one for the target.

    Attributes:
        what: Why, in one line.
        role: What it is that the target would have had to give: the value of a `roles.Role`; empty
            where the reason is another.
        value: The captured value.
    """

    def __init__(self, what: str, role: str = "", value: Any = None) -> None:
        super().__init__(what)
        self.what = what
        self.role = role
        self.value = value
