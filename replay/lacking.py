"""
What steps lack: changes that are left out and that they go by, themselves or through others.

An ACL that was not made is not described, and a partition that was not made takes no records. What
could not be done for that is in turn lacked by who comes after it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from uuid import UUID

from replay.causes import Causes, same_things
from replay.footprint import CLUSTER, COMMUTING, TOPICS

_LISTED = COMMUTING | {TOPICS}
"""Told as a whole: only who asks for it goes by all that makes it up."""


class Lacking:
    """
    What each step lacks.

    Args:
        kinds: What there is to be lacked at a time.
        rows: For each step which of them it is; of none where nothing is lacked.
    """

    def __init__(self, kinds: Sequence[frozenset[str]] = (), rows: Iterable[int] = ()) -> None:
        self._kinds = kinds
        self._rows = array("i", rows)

    def of(self, step: int) -> frozenset[str]:
        """Return what a step lacks."""
        return self._kinds[self._rows[step]] if self._rows else frozenset()


def lacking(
    order: Iterable[int],
    changes: Mapping[int, frozenset[str]],
    unsent: Collection[int],
    causes: Causes,
    name: Callable[[UUID], str | None],
) -> Lacking:
    """
    Find out what each step lacks.

    Args:
        order: The exchanges, as they were captured.
        changes: Exchange -> what is lacked without it.
        unsent: Exchanges that are left out.
        causes: Knows what exchanges touched.
        name: Returns the name of a topic id.
    """
    missed = {number: changes[number] for number in changes if number in unsent}
    if not missed:
        return Lacking()
    kinds: dict[frozenset[str], int] = {}
    found = _lacks(order, missed, unsent, causes, name)
    rows = array("i", (kinds.setdefault(each, len(kinds)) for each in found))
    return Lacking(list(kinds), rows)


def _lacks(
    order: Iterable[int],
    missed: Mapping[int, frozenset[str]],
    unsent: Collection[int],
    causes: Causes,
    name: Callable[[UUID], str | None],
) -> Iterator[frozenset[str]]:
    """Yield what each step lacks."""
    same = same_things(causes.things, name)
    cluster = causes.things.get(CLUSTER)  # orders all that is configured, whatever it is
    listed = {causes.things.get(thing) for thing in _LISTED}
    nothing = frozenset[str]()
    lacked: dict[int, frozenset[str]] = {}
    for number in order:
        touched = [(same.get(each >> 1, each >> 1), each & 1) for each in causes.touched(number)]
        found = nothing
        for thing, writes in touched:
            if thing in lacked and not (writes and thing in listed):
                found |= lacked[thing]
        yield found
        if number in missed:
            found |= missed[number]
        elif number in unsent:
            continue
        if found:
            for thing, writes in touched:
                if writes and thing != cluster:
                    lacked[thing] = lacked.get(thing, nothing) | found
