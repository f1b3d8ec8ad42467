"""
Which answers overlapped a change of what they tell: they may be of before it, or of after it.

Where a partition ends while somebody writes to it may be told either way, and so may the committed
offsets of a group. A transaction ends after EndTxn is answered: its markers, and the offsets in it,
are written later (KIP-98), but before its producer ends the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from replay.causes import Causes, Times, same_things
from replay.footprint import Thing

_Ints = NDArray[np.int64]
_Span = tuple[int, int]

_EVER = np.iinfo(np.int64).max

Overlaps = Mapping[Thing, bool]
"""Thing that changed meanwhile -> whether the answer may be of before the captured one, too."""


def overlaps(
    causes: Causes, times: Times, name: Callable[[UUID], str | None]
) -> dict[int, dict[Thing, bool]]:
    """
    Return of exchanges that ask how far something has come what of it changed meanwhile.

    Args:
        causes: Knows what exchanges touched.
        times: Knows their times.
        name: Returns the name of a topic id.
    """
    same = same_things(causes.things, name)
    asked: dict[int, list[int]] = {}
    for number, touches in causes.observed:
        for each in touches:
            asked.setdefault(same.get(each >> 1, each >> 1), []).append(number)
    changed = _changed(causes, times, same, asked.keys())
    titles = {number: thing for thing, number in causes.things.items() if number in changed}
    found: dict[int, dict[Thing, bool]] = {}
    for thing, (changes, ends) in changed.items():
        numbers = asked[thing]
        spans = _columns([_span(times, each) for each in numbers])
        during = _meet(spans, changes).tolist()
        behind = _meet(spans, ends).tolist()
        for number, is_during, is_behind in zip(numbers, during, behind, strict=True):
            if is_during or is_behind:
                found.setdefault(number, {})[titles[thing]] = is_during
    return found


def _changed(
    causes: Causes, times: Times, same: Mapping[int, int], wanted: Collection[int]
) -> dict[int, tuple[list[_Span], list[_Span]]]:
    """Return of things when they were being changed, and when ends of transactions were."""
    settled = dict(_settled(causes, times))
    changed: dict[int, tuple[list[_Span], list[_Span]]] = {}
    for thing, number in causes.writers(wanted, same):
        changes, ends = changed.setdefault(thing, ([], []))
        begun_ns, done_ns = _span(times, number)
        changes.append((begun_ns, done_ns))
        if number in settled:
            ends.append((done_ns, settled[number]))
    return changed


def _settled(causes: Causes, times: Times) -> Iterator[tuple[int, int]]:
    """Yield exchanges that end transactions, and until when that may have taken."""
    for numbers in causes.ended.values():
        begun = [times.times_ns(each)[0] for each in numbers]
        order = np.argsort(np.array(begun), kind="stable").tolist()
        for at, following in zip(order, [*order[1:], None], strict=True):
            yield numbers[at], _EVER if following is None else begun[following]


def _span(times: Times, number: int) -> _Span:
    begun_ns, done_ns = times.times_ns(number)
    return begun_ns, _EVER if done_ns is None else done_ns


def _columns(spans: list[_Span]) -> _Ints:
    return np.array(spans, np.int64).reshape(-1, 2).T


def _meet(asked: _Ints, spans: list[_Span]) -> NDArray[np.bool_]:
    """Tell of each span whether it shares time with one of others."""
    begun, done = _columns(sorted(spans))
    latest = np.concatenate(([-1], np.maximum.accumulate(done)))
    met: NDArray[np.bool_] = latest[np.searchsorted(begun, asked[1], "left")] > asked[0]
    return met
