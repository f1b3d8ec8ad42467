"""The captured exchange nearest to a request without an answer, and the field that differs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from serve.matching.meaning import OF, Meaning

ABSENT = "nothing"


class Nearest(NamedTuple):
    """
    A captured exchange that means nearly the same.

    Attributes:
        number: Its number.
        field: The first field that differs.
        sent: The value in the request.
        captured: The value in the exchange.
        differences: The number of fields that differ.
    """

    number: int
    field: str
    sent: Any
    captured: Any
    differences: int


def nearest(sent: Meaning, candidates: Iterable[tuple[int, Meaning]]) -> Nearest | None:
    """Return the nearest of some exchanges, given by number and meaning; None without any."""
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
    """Return path and values of the first difference; an element may have another name."""
    if not places:
        return "", ABSENT, ABSENT
    named = (each for each in places if isinstance(sent.get(each, captured.get(each)), str))
    first = next(named, places[0])
    path = first.partition(OF)[0]
    twins = (each for each in places if each not in sent and each.partition(OF)[0] == path)
    twin = first if first in captured else next(twins, first)
    return path, sent.get(first, ABSENT), captured.get(twin, ABSENT)
