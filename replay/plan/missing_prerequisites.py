"""
The missing prerequisites of steps: omitted changes that they depend on, directly or indirectly.

Without its creation an ACL is not described, and a partition takes no records. What could not be
done for that reason is in turn a missing prerequisite of later steps.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from uuid import UUID

from replay.order.dependencies import Dependencies, same_resources
from replay.order.read_write_sets import CLUSTER, COMMUTING, TOPICS

_LISTED = COMMUTING | {TOPICS}
"""Resources that represent whole lists: only steps that read the list depend on its changes."""


class MissingPrerequisites:
    """
    The missing prerequisites of each step.

    Args:
        kinds: The distinct sets of missing prerequisites.
        rows: For each step the index of its set; empty if no step lacks anything.
    """

    def __init__(self, kinds: Sequence[frozenset[str]] = (), rows: Iterable[int] = ()) -> None:
        self._sets = kinds
        self._rows = array("i", rows)

    def of(self, step: int) -> frozenset[str]:
        """Return the missing prerequisites of a step."""
        return self._sets[self._rows[step]] if self._rows else frozenset()


def find_missing_prerequisites(
    order: Iterable[int],
    provided: Mapping[int, frozenset[str]],
    left_out: Collection[int],
    dependencies: Dependencies,
    name: Callable[[UUID], str | None],
) -> MissingPrerequisites:
    """
    Find the missing prerequisites of each step.

    Args:
        order: The exchanges in captured order.
        provided: Exchange -> the prerequisites that are missing without it.
        left_out: Exchanges that are left out.
        dependencies: The dependencies: the resources read and written by each exchange.
        name: Returns the name of a topic id.
    """
    missed = {number: provided[number] for number in provided if number in left_out}
    if not missed:
        return MissingPrerequisites()
    kinds: dict[frozenset[str], int] = {}
    found = _missing_by_step(order, missed, left_out, dependencies, name)
    rows = array("i", (kinds.setdefault(each, len(kinds)) for each in found))
    return MissingPrerequisites(list(kinds), rows)


def _missing_by_step(
    order: Iterable[int],
    omitted: Mapping[int, frozenset[str]],
    left_out: Collection[int],
    dependencies: Dependencies,
    name: Callable[[UUID], str | None],
) -> Iterator[frozenset[str]]:
    """Yield the missing prerequisites of each step."""
    accessed = dependencies.ordered_accesses(same_resources(dependencies.resources, name))
    cluster = dependencies.resources.get(CLUSTER)  # orders all configuration requests
    listed = {dependencies.resources.get(resource) for resource in _LISTED}
    nothing = frozenset[str]()
    lacked: dict[int, frozenset[str]] = {}
    for number in order:
        touched = [(each >> 1, each & 1) for each in accessed(number)]
        found = nothing
        for resource, writes in touched:
            if resource in lacked and not (writes and resource in listed):
                found |= lacked[resource]
        yield found
        if number in omitted:
            found |= omitted[number]
        elif number in left_out:
            continue
        if found:
            for resource, writes in touched:
                if writes and resource != cluster:
                    lacked[resource] = lacked.get(resource, nothing) | found
