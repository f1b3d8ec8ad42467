"""All metrics of a capture, as it is read by one thread and asked for by others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from threading import Lock

import numpy as np

from dissector.cli.capture_source import Source
from dissector.engine.reading.capture import Window
from dissector.engine.tables.column_types import Columns
from dissector.protocol.embedded.secrecy.credentials import mask_texts
from dissector.summary.statistics import health
from dissector.summary.version_offers import VersionOffers
from exporter.exchange_metrics import ExchangeMetrics
from exporter.group_metrics import GroupMetrics
from exporter.metric_families import HEALTH, PASSED_OVER
from exporter.metric_series import FamilySamples, Label, LabelRows, Sample, Snapshot, merged

MAX_CONNECTIONS = 100_000
"""Maximum number of connections whose client's software is known; the oldest is forgotten."""

_FIRST_CONNECTIONS = 4096
"""Those that the capture has forgotten are dropped beyond this many, and twice the others."""

HEALTH_INTERVAL_S = 0.5
"""Least time between two readings of the state of the capture, in seconds."""

HEALTH_SHARE = 0.02
"""Most of the time that these readings take: each goes through all connections that are known."""

_PASSED_OVER = "packets passed over: "


class CaptureMetrics:
    """
    The metrics of a capture; only `snapshot` may be called by another thread.

    Args:
        source: The capture; its windows are observed from now on.
        most: Maximum number of series of a family, beside the one of all others.
    """

    def __init__(self, source: Source, most: int) -> None:
        self._source = source
        self._most = most
        self._lock = Lock()
        self._offers = VersionOffers(source.capture)
        self._exchanges = ExchangeMetrics(most, self._offers.software_of, source.filter)
        self._groups = GroupMetrics(source.capture, most, source.filter)
        self._health: Mapping[str, int] = {}
        self._mask: Callable[[Label], Label] = mask_texts
        self._due_s = 0.0
        self._next_drop = _FIRST_CONNECTIONS
        source.observers.append(self._observe)

    def add(self, columns: Columns) -> None:
        """Add exchanges, by the columns of `pairs`."""
        with self._lock:
            self._exchanges.add(columns)

    def refresh(self, *, is_last: bool = False) -> None:
        """Read how complete the capture is; not more often than makes sense."""
        reading = self._source.capture.reading
        begin_s = time.monotonic()
        if reading is None or (not is_last and begin_s < self._due_s):
            return
        state = health(reading, self._source.problems + self._exchanges.problems)
        known = self._source.capture.logins.all
        with self._lock:
            self._health = state
            self._mask = lambda label: mask_texts(label, known)
        end_s = time.monotonic()
        self._due_s = end_s + max(HEALTH_INTERVAL_S, (end_s - begin_s) / HEALTH_SHARE)

    def snapshot(self) -> Snapshot:
        """Return all series, without secrets in their labels."""
        with self._lock:
            found = [*self._exchanges.samples(), *self._groups.samples(), *self._state_samples()]
            mask = self._mask
        return [FamilySamples(family, merged(samples, mask)) for family, samples in found]

    def _observe(self, window: Window) -> None:
        with self._lock:
            self._offers.observe(window)
            self._groups.add(window)
            self._offers.requesters.clear()  # those of a report on clients
            self._offers.offers.clear()
            if len(self._offers.software) > self._next_drop:
                self._drop_software()

    def _drop_software(self) -> None:
        """Forget the software of connections that the capture has forgotten, and of the oldest."""
        reading, software = self._source.capture.reading, self._offers.software
        assert reading is not None
        is_known = reading.streams.connections.is_kept(np.array([*software]))
        for number in np.array([*software])[~is_known].tolist():
            del software[number]
        for _ in range(len(software) - MAX_CONNECTIONS):
            del software[next(iter(software))]
        self._next_drop = max(_FIRST_CONNECTIONS, min(2 * len(software), MAX_CONNECTIONS))

    def _state_samples(self) -> Iterator[FamilySamples]:
        for key, family in HEALTH.items():
            values = [Sample((), (self._health[key],))] if self._health else []
            yield FamilySamples(family, values)
        reasons = LabelRows(1, self._most)
        passed_over = [
            Sample(reasons.labels[reasons.row_of((name.removeprefix(_PASSED_OVER),))], (count,))
            for name, count in self._health.items()
            if name.startswith(_PASSED_OVER)
        ]
        yield FamilySamples(PASSED_OVER, merged(passed_over, tuple))
