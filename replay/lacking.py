"""
What steps lack: changes that are left out and that they go by, themselves or through others.

An ACL that was not made is not described, and a partition that was not made takes no records. What
could not be done for that is in turn lacked by who comes after it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Mapping
from uuid import UUID

from replay.causes import Causes, same_things
from replay.footprint import CLUSTER, COMMUTING, TOPICS

_LISTED = COMMUTING | {TOPICS}
"""Told as a whole: only who asks for it goes by all that makes it up."""


class Lacking:
    """
    APIs that were left out, for each step that goes by one of their requests.

    Args:
        apis: Names that bits stand for, from the lowest one on.
        bits: Of each step; of none where nothing is lacked.
    """

    def __init__(self, apis: Collection[str] = (), bits: Iterable[int] = ()) -> None:
        self._apis = tuple(apis)
        self._bits = array("i", bits)

    def of(self, step: int) -> frozenset[str]:
        """Return what a step lacks."""
        bits = self._bits[step] if self._bits else 0
        if not bits:
            return frozenset()
        return frozenset(api for at, api in enumerate(self._apis) if bits >> at & 1)


def lacking(
    order: Iterable[int],
    changing: Mapping[int, str],
    unsent: Collection[int],
    causes: Causes,
    name: Callable[[UUID], str | None],
) -> Lacking:
    """
    Find out what each step lacks.

    Args:
        order: The exchanges, as they were captured.
        changing: Exchanges that destroy or reconfigure, and their APIs.
        unsent: Exchanges that are left out.
        causes: Knows what exchanges touched.
        name: Returns the name of a topic id.
    """
    missed = {number: api for number, api in changing.items() if number in unsent}
    apis = sorted(set(missed.values()))
    return Lacking(apis, _bits(order, missed, apis, unsent, causes, name) if missed else ())


def _bits(
    order: Iterable[int],
    missed: Mapping[int, str],
    apis: list[str],
    unsent: Collection[int],
    causes: Causes,
    name: Callable[[UUID], str | None],
) -> Iterable[int]:
    """Yield for each step a bit for each API of which it lacks something."""
    same = same_things(causes.things, name)
    cluster = causes.things.get(CLUSTER)  # orders all that is configured, whatever it is
    listed = {causes.things.get(thing) for thing in _LISTED}
    bit_of = {api: 1 << at for at, api in enumerate(apis)}
    lacked: dict[int, int] = {}
    for number in order:
        touched = [(same.get(each >> 1, each >> 1), each & 1) for each in causes.touched(number)]
        bits = 0
        for thing, writes in touched:
            if not (writes and thing in listed):
                bits |= lacked.get(thing, 0)
        yield bits
        if number in missed:
            bits |= bit_of[missed[number]]
        elif number in unsent:
            continue
        if bits:
            for thing, writes in touched:
                if writes and thing != cluster:
                    lacked[thing] = lacked.get(thing, 0) | bits
