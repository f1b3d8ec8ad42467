"""
Responses that overlapped a change of their subject, and may show the state before or after it.

A response that overlaps an append may report the end of the partition of before or after it; the
same holds for a group's committed offsets. A transaction's end is complete only after the EndTxn
response: its markers, and its committed offsets, are written later (KIP-98), but before its
producer ends the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from replay.order.access_sweep import CaptureTimes
from replay.order.dependencies import Dependencies, same_resources
from replay.order.read_write_sets import Resource

_Ints = NDArray[np.int64]
_Span = tuple[int, int]

_FOREVER_NS = np.iinfo(np.int64).max

Overlaps = Mapping[Resource, bool]
"""Concurrently changed resource -> whether the response may show an earlier state than captured."""


def overlaps(
    dependencies: Dependencies, times: CaptureTimes, name: Callable[[UUID], str | None]
) -> dict[int, dict[Resource, bool]]:
    """
    Return the exchanges that read positions, with the resources that changed during each read.

    Args:
        dependencies: The dependencies: the resources read and written by each exchange.
        times: The times of exchanges.
        name: Returns the name of a topic id.
    """
    same = same_resources(dependencies.resources, name)
    queries: dict[int, list[int]] = {}
    for number, accesses in dependencies.progress_queries:
        for each in accesses:
            queries.setdefault(same.get(each >> 1, each >> 1), []).append(number)
    changed = _changed(dependencies, times, same, queries.keys())
    titles = {
        number: resource for resource, number in dependencies.resources.items() if number in changed
    }
    found: dict[int, dict[Resource, bool]] = {}
    for resource, (changes, ends) in changed.items():
        numbers = queries[resource]
        spans = _columns([_span(times, each) for each in numbers])
        during = _overlap(spans, changes).tolist()
        after = _overlap(spans, ends).tolist()
        for number, is_during, is_after in zip(numbers, during, after, strict=True):
            if is_during or is_after:
                found.setdefault(number, {})[titles[resource]] = is_during
    return found


def _changed(
    dependencies: Dependencies,
    times: CaptureTimes,
    same: Mapping[int, int],
    wanted: Collection[int],
) -> dict[int, tuple[list[_Span], list[_Span]]]:
    """Return the times of changes to each resource, and of the completion of transactions."""
    ended_transactions = dict(_transaction_ends(dependencies, times))
    changed: dict[int, tuple[list[_Span], list[_Span]]] = {}
    for resource, number in dependencies.writers(wanted, same):
        changes, ends = changed.setdefault(resource, ([], []))
        begun_ns, done_ns = _span(times, number)
        changes.append((begun_ns, done_ns))
        if number in ended_transactions:
            ends.append((done_ns, ended_transactions[number]))
    return changed


def _transaction_ends(dependencies: Dependencies, times: CaptureTimes) -> Iterator[tuple[int, int]]:
    """Yield exchanges that end transactions, with the latest time of completion."""
    for numbers in dependencies.transaction_ends.values():
        begun = [times.times_ns(each)[0] for each in numbers]
        order = np.argsort(np.array(begun), kind="stable").tolist()
        for at, following in zip(order, [*order[1:], None], strict=True):
            yield numbers[at], _FOREVER_NS if following is None else begun[following]


def _span(times: CaptureTimes, number: int) -> _Span:
    begun_ns, done_ns = times.times_ns(number)
    return begun_ns, _FOREVER_NS if done_ns is None else done_ns


def _columns(spans: list[_Span]) -> _Ints:
    return np.array(spans, np.int64).reshape(-1, 2).T


def _overlap(wanted: _Ints, spans: list[_Span]) -> NDArray[np.bool_]:
    """Return for each time span whether it overlaps one of the others."""
    begun, done = _columns(sorted(spans))
    latest = np.concatenate(([-1], np.maximum.accumulate(done)))
    met: NDArray[np.bool_] = latest[np.searchsorted(begun, wanted[1], "left")] > wanted[0]
    return met
