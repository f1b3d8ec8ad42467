"""Search for the captured exchange nearest to an unanswered request."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from serve.matching.meaning import OF, Meaning

ABSENT = "nothing"


class Nearest(NamedTuple):
    """
    The captured exchange with the fewest differences to a request.

    Attributes:
        number: Number of the exchange.
        field: Path of the first difference.
        sent: Value in the request.
        captured: Value in the exchange.
        differences: Number of differences.
    """

    number: int
    field: str
    sent: Any
    captured: Any
    differences: int


def nearest(sent: Meaning, candidates: Iterable[tuple[int, Meaning]]) -> Nearest | None:
    """Return the nearest exchange among pairs of number and meaning; None if empty."""
    best: Nearest | None = None
    for number, captured in candidates:
        places = [
            place
            for place in (*sent, *(each for each in captured if each not in sent))
            if place not in sent or place not in captured or sent[place] != captured[place]
        ]
        if best is not None and len(places) >= best.differences:
            continue
        best = Nearest(number, *_first_difference(places, sent, captured), len(places))
    return best


def _first_difference(places: list[str], sent: Meaning, captured: Meaning) -> tuple[str, Any, Any]:
    """Return path and values of the first difference; the elements may have different keys."""
    if not places:
        return "", ABSENT, ABSENT
    named = (each for each in places if isinstance(sent.get(each, captured.get(each)), str))
    first = next(named, places[0])
    path = first.partition(OF)[0]
    twins = (each for each in places if each not in sent and each.partition(OF)[0] == path)
    twin = first if first in captured else next(twins, first)
    return path, sent.get(first, ABSENT), captured.get(twin, ABSENT)
