"""A part of a capture: the connections that one of several processes plays."""

from __future__ import annotations

import re
from typing import NamedTuple, Self

from dissector.errors import UsageError

_PART = re.compile(r"(\d{1,6})/(\d{1,6})")


class CapturePart(NamedTuple):
    """One of `parts` parts; `number` counts from 1."""

    number: int
    parts: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """
        Parse `I/N`.

        Raises:
            UsageError: It has another form, or the part does not exist.
        """
        found = _PART.fullmatch(text)
        part = cls(0, 0) if found is None else cls(int(found[1]), int(found[2]))
        if not 1 <= part.number <= part.parts:
            raise UsageError(f"--part takes I/N, such as 1/4, not {text!r}")
        return part

    def __str__(self) -> str:
        return f"{self.number}/{self.parts}"
