"""
The missing prerequisites of steps: omitted changes that they depend on, directly or indirectly.

Without its creation an ACL is not described, and a partition takes no records. What could not be
done for that reason is in turn a missing prerequisite of later steps.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from uuid import UUID

from replay.plan.dependencies import Causes, same_things
from replay.plan.read_write_sets import CLUSTER, COMMUTING, TOPICS

_LISTED = COMMUTING | {TOPICS}
"""Things that stand for whole lists: only steps that read the list depend on its changes."""


class Lacking:
    """
    The missing prerequisites of each step.

    Args:
        kinds: The distinct sets of missing prerequisites.
        rows: For each step the index of its set; empty if no step lacks anything.
    """

    def __init__(self, kinds: Sequence[frozenset[str]] = (), rows: Iterable[int] = ()) -> None:
        self._kinds = kinds
        self._rows = array("i", rows)

    def of(self, step: int) -> frozenset[str]:
        """Return the missing prerequisites of a step."""
        return self._kinds[self._rows[step]] if self._rows else frozenset()


def lacking(
    order: Iterable[int],
    changes: Mapping[int, frozenset[str]],
    unsent: Collection[int],
    causes: Causes,
    name: Callable[[UUID], str | None],
) -> Lacking:
    """
    Find the missing prerequisites of each step.

    Args:
        order: The exchanges in captured order.
        changes: Exchange -> the prerequisites that are missing without it.
        unsent: Exchanges that are left out.
        causes: The dependencies: what each exchange read and wrote.
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
    """Yield the missing prerequisites of each step."""
    same = same_things(causes.things, name)
    cluster = causes.things.get(CLUSTER)  # orders all configuration requests
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
