"""
Service order: the order of steps, by request times and by evidence in responses.

A broker may serve a request after a later one on another connection. The offsets of appended
records show that, and so does a CreateTopics for an existing topic. Each step depends only on
earlier ones, so such a request gets the later number.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from dissector.capture.columns import Int64s, unique

_SPACING = 1 << 20
"""Distance between the keys of two steps: the number of steps that may move in between."""

_MAX_ROUNDS = 4
"""Moving a request moves those behind it on its connection, which may move others."""


def service_order(
    request_ns: Int64s, response_ns: Int64s, connection: Int64s, served: Iterable[Int64s]
) -> Int64s:
    """
    Return the exchanges in the order of their steps.

    Requests of a connection keep their order, and no request moves behind its captured response.

    Args:
        request_ns: For each exchange the time of its request.
        response_ns: The time of its response; negative without one.
        connection: Its connection.
        served: Exchanges in the order in which a broker served them, for each log or topic.
    """
    order = np.argsort(request_ns, kind="stable")
    steps = np.empty_like(order)
    steps[order] = np.arange(len(order))
    moved = [each for each in served if (np.diff(steps[each]) < 0).any()]
    if not moved:
        return order
    keys = steps * _SPACING
    limits = np.searchsorted(request_ns[order], response_ns) * _SPACING - _SPACING // 2
    limits = np.where(response_ns < 0, np.iinfo(np.int64).max, limits)
    members = _connections(order, connection)
    for _ in range(_MAX_ROUNDS):
        before = keys.copy()
        for each in moved:
            wanted = _ascending(keys[each])
            keys[each] = np.where(wanted <= limits[each], wanted, keys[each])
        for number in unique(connection[keys != before]).tolist():
            keys[members[number]] = _ascending(keys[members[number]])
        if (keys == before).all():
            break
    found: Int64s = np.argsort(keys, kind="stable")
    return found


def _ascending(keys: Int64s) -> Int64s:
    """Return growing keys, by raising smaller ones."""
    count = np.arange(len(keys))
    grown: Int64s = np.maximum.accumulate(keys - count) + count
    return grown


def _connections(order: Int64s, connection: Int64s) -> dict[int, Int64s]:
    """Return the exchanges of each connection, in their order."""
    by_connection = order[np.argsort(connection[order], kind="stable")]
    numbers, starts = np.unique(connection[by_connection], return_index=True)
    parts = np.split(by_connection, starts[1:])
    return dict(zip(numbers.tolist(), parts, strict=True))
