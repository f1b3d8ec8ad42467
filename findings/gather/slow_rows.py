"""
Exchanges that took long, in steps of latency, beside the latencies of their APIs.

Which exchanges are slow is known at the end only, by the median of their API. So they are counted
in steps, at one of which the slow ones begin.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dissector.engine.fields.message_fields import MessageFields
from dissector.engine.tables.column_types import distinct
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.summary.percentiles import Latencies
from findings.gather.part_rows import PartRows, Places

STEPS_MS = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 60_000)
"""The latencies at which slow exchanges may begin."""

LONG_POLLS = {1: "Fetch", 78: "ShareFetch"}
"""Key -> API whose requests name a time for which the broker waits for records."""

WAITS = frozenset(("JoinGroup", "SyncGroup"))
"""APIs whose requests wait for other members, which the timeline explains (KIP-62)."""

_STEPS_NS = np.array(STEPS_MS, np.int64) * 1_000_000

_NEARLY = 0.9
"""Part of the time of a long poll from which on it counts as waiting."""


@dataclass(slots=True)
class SlowRows:
    """
    Latencies by API.

    Attributes:
        latencies: API -> its latencies, without those of long polls that waited.
        places: API, highest step that exchanges reach, lowest step that is at least twice their
            long poll -> these exchanges.
    """

    latencies: dict[str, Latencies] = field(default_factory=dict)
    places: dict[tuple[str, int, int], Places] = field(default_factory=dict)

    def add(self, part: PartRows) -> None:
        """Add the exchanges of a window."""
        poll_ns = _long_polls(part)
        api, is_timed = part.coded("api"), part.latency_ns != NONE
        is_waiting = (poll_ns > 0) & (part.latency_ns >= poll_ns * _NEARLY)
        codes = np.where(is_timed & (api.codes != NONE), api.codes, -1)
        which, found = distinct(codes)
        for index, code in enumerate(found.tolist()):
            name = str(api.values[code] or "")
            if code < 0 or not name or name in WAITS:
                continue
            rows = np.flatnonzero(which == index)
            at_once = rows[~is_waiting[rows]]
            self.latencies.setdefault(name, Latencies()).add(part.latency_ns[at_once])
            self._add_slow(part, name, rows[part.latency_ns[rows] >= _STEPS_NS[0]], poll_ns)

    def _add_slow(self, part: PartRows, api: str, rows: Ints, poll_ns: Ints) -> None:
        if not len(rows):
            return
        reached = np.searchsorted(_STEPS_NS, part.latency_ns[rows], side="right") - 1
        first = np.searchsorted(_STEPS_NS, 2 * poll_ns[rows])
        which, found = distinct(reached * len(_STEPS_NS) * 2 + first)
        for index, code in enumerate(found.tolist()):
            key = (api, *divmod(code, len(_STEPS_NS) * 2))
            self.places.setdefault(key, Places()).add(part, rows[which == index])

    def slow(self, api: str, step: int) -> Places:
        """Return the exchanges that are slow if those of an API begin at a step."""
        total = Places()
        for (name, reached, first), places in self.places.items():
            if name == api and first <= step <= reached:
                total.add_places(places)
        return total


def _long_polls(part: PartRows) -> Ints:
    """Return the time for which each request let the broker wait; 0 for requests without one."""
    found = np.zeros(len(part), np.int64)
    for key in LONG_POLLS:
        chosen = part.table.api_key == key
        if not chosen.any():
            continue
        found[chosen] = _STEPS_NS[-1] * 2  # unreadable ones are never slow
        fields = MessageFields(part.table, key, "request", ("max_wait_ms",))
        found[fields.rows] = np.clip(fields.each("max_wait_ms", 0), 0, 1 << 31) * 1_000_000
    return found
