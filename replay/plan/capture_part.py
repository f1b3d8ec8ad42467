"""
A part of a capture: the connections that one of several processes plays, and their order.

No process waits for steps that another one plays. Where such a step stands between two own ones, as
a write to a log between two other writes, the later one waits for the earlier one directly.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple, Self

from dissector.errors import UsageError

_PART = re.compile(r"(\d{1,6})/(\d{1,6})")

_MAX_KEPT = 64
"""Limit of own connections with a known newest step for each foreign connection."""

_Newest = dict[int, int]
"""Own connection -> its newest step on which another connection's steps depend."""


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


def order_within(
    connections: Sequence[int],
    is_elsewhere: Sequence[int],
    causes: Sequence[int],
    cause_ends: Sequence[int],
) -> tuple[array[int], array[int]]:
    """
    Return the dependencies of steps within a part, in place of those across parts.

    Args:
        connections: The connection of each step.
        is_elsewhere: Whether another process plays each step.
        causes: The dependencies of all steps, concatenated.
        cause_ends: For each step the end of its dependencies; begins with 0.
    """
    found, ends = array("i"), array("q", [0])
    known: defaultdict[int, _Newest] = defaultdict(dict)
    for step, connection in enumerate(connections):
        newest = known[connection] if is_elsewhere[step] else dict[int, int]()
        own: set[int] = set()
        for cause in causes[cause_ends[step] : cause_ends[step + 1]]:
            other = connections[cause]
            if not is_elsewhere[cause]:
                own.add(cause)
                newest[other] = max(newest.get(other, -1), cause)
            elif other != connection:
                for each, at in known[other].items():
                    newest[each] = max(newest.get(each, -1), at)
        if is_elsewhere[step]:
            _limit(newest)
        else:
            found.extend(sorted(own.union(newest.values())))
        ends.append(len(found))
    return found, ends


def _limit(newest: _Newest) -> None:
    """Forget the oldest steps beyond the limit."""
    for _ in range(len(newest) - _MAX_KEPT):
        del newest[min(newest, key=newest.__getitem__)]
