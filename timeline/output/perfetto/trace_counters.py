"""Counters: requests in flight, bytes, fetch positions, lag of groups, throttle times."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dissector.engine.fields.field_predicates import matches_any_value
from dissector.engine.reading.capture import Capture, Window
from dissector.engine.records.batch_table import Batches
from dissector.engine.records.record_locator import RecordFields
from dissector.engine.tables.column_types import distinct
from dissector.engine.tables.exchange_table import ANSWERED, NONE, Ints
from dissector.summary.group_lag import GroupLags, Place
from timeline.events.fetch_counts import records_behind
from timeline.events.reliable_bodies import reliable_body
from timeline.output.perfetto.packets import counter_packets
from timeline.output.perfetto.running_sums import RunningSums
from timeline.output.perfetto.tracks import Tracks
from timeline.output.perfetto.window_exchanges import WindowExchanges
from timeline.trackers.tracker import is_positive

_THROTTLED_APIS = (0, 1)
"""Produce and Fetch, which byte quotas delay."""


class Counters:
    """Writes the counters of clients and brokers."""

    def __init__(
        self,
        capture: Capture,
        tracks: Tracks,
        write: Callable[[bytes], object],
        mask: Callable[[str], str],
    ) -> None:
        """Start; `write` receives packets, `mask` masks credentials in names."""
        self._capture, self._tracks, self._write, self._mask = capture, tracks, write, mask
        self._sums = RunningSums(write)
        self._lags = GroupLags()
        self._throttled_until: dict[int, int] = {}

    def add(self, exchanges: WindowExchanges, complete_ns: int) -> None:
        """Process the exchanges of a window; no later one begins before `complete_ns`."""
        table = exchanges.table
        is_answered = table.status == ANSWERED
        begin, end = exchanges.begin_ns, exchanges.end_ns
        one = np.ones(len(exchanges), np.int64)
        for process in (exchanges.client, exchanges.broker):
            track = self._of_processes(process, "in flight", "requests")
            self._sums.add(track[is_answered], begin[is_answered], one[is_answered])
            self._sums.add(track[is_answered], end[is_answered], -one[is_answered])
        for frames, name in ((table.request, "request bytes"), (table.response, "response bytes")):
            there = frames.size != NONE
            track = self._of_processes(exchanges.broker[there], name, "bytes")
            self._sums.add(track, frames.time_ns[there], frames.size[there] + 4)
        self._sums.write_before(complete_ns)
        self._add_throttling(exchanges)

    def add_positions(
        self, exchanges: WindowExchanges, fields: RecordFields, found: Batches
    ) -> None:
        """Process the records of a window: how far clients have fetched."""
        field, behind = records_behind(exchanges.table, fields, found)
        field, behind = field[behind != NONE], behind[behind != NONE]
        row = fields.row[field]
        place = fields.topic[field] << 32 | fields.partition[field] & 0xFFFFFFFF
        codes, found_places = distinct(place)
        keys, lanes = distinct(exchanges.client[row] << 32 | codes)
        tracks = []
        for each in lanes.tolist():
            topic, partition = divmod(int(found_places[each & 0xFFFFFFFF]), 2**32)
            name = self._capture.names.name(fields.topics[topic])
            name = f"fetch position {self._mask(name)} {partition}"
            tracks.append(self._counter(each >> 32, name, "records behind"))
        track = np.array(tracks, np.int64)[keys] if len(keys) else keys
        self._write_points(track, exchanges.end_ns[row], behind)

    def add_group_lags(self, window: Window, chosen: Ints | None) -> None:
        """
        Process the offsets of a window: the lag of groups, as `kafkashark groups` shows it.

        Args:
            window: The window.
            chosen: Rows with committed offsets that count; None for all. High watermarks of all
                Fetch responses count, as a filter of a group passes none.
        """
        reading, table, names = self._capture.reading, window.exchanges, self._capture.names
        assert reading is not None
        points = self._lags.read(
            table, lambda row: reading.exchange(table, row, names), names.name, chosen
        )
        codes, numbers = distinct(points.place)
        places = [self._lags.places[each] for each in numbers.tolist()]
        parts = [
            self._lag_track(each, f"lag {self._mask(each.topic)} {each.partition}")
            for each in places
        ]
        totals = [self._lag_track(each, "lag") for each in places]
        known = points.lag != NONE
        for tracks, values in ((parts, points.lag), (totals, points.total)):
            track = np.array(tracks, np.int64)[codes] if len(codes) else codes
            self._write_points(track[known], points.time_ns[known], values[known])

    def finish(self) -> None:
        """Write pending values at the end of the capture."""
        self._sums.write_before(2**62)
        self._end_throttling(list(self._throttled_until))

    def _of_processes(self, process: Ints, name: str, unit: str) -> Ints:
        """Return the counter of each process."""
        codes, found = distinct(process)
        tracks = [self._tracks.counter(each, name, unit) for each in found.tolist()]
        return np.array(tracks, np.int64)[codes] if len(codes) else codes

    def _lag_track(self, place: Place, name: str) -> int:
        """Return a counter below the events of a group; NONE beyond the limit."""
        groups, group = self._tracks.child(0, "groups"), self._mask(place.group)
        if not self._tracks.has_room(groups, group):
            return NONE
        return self._counter(self._tracks.child(groups, group), name, "records")

    def _counter(self, parent: int, name: str, unit: str) -> int:
        """Return a counter; NONE beyond the limit."""
        if not self._tracks.has_room(parent, name):
            return NONE
        return self._tracks.counter(parent, name, unit)

    def _write_points(self, track: Ints, time_ns: Ints, value: Ints) -> None:
        """Write the points of counters; NONE is no counter."""
        shown = track != NONE
        self._write(counter_packets(track[shown], time_ns[shown], value[shown]))

    def _add_throttling(self, exchanges: WindowExchanges) -> None:
        """Write the throttle time at its response, and 0 when it has passed (KIP-219)."""
        table, reading = exchanges.table, self._capture.reading
        assert reading is not None
        for api_key in _THROTTLED_APIS:
            rows = np.flatnonzero(table.api_key == api_key)
            if not len(rows):
                continue
            result = matches_any_value(table, "response", ("throttle_time_ms",), rows, is_positive)
            for row in rows[result.passes | result.unknown].tolist():
                exchange = reading.exchange(table, row, self._capture.names)
                body = reliable_body(exchange.response)
                throttle_ms = 0 if body is None else body.get("throttle_time_ms") or 0
                if throttle_ms > 0:
                    client, end_ns = int(exchanges.client[row]), int(exchanges.end_ns[row])
                    self._throttle(client, end_ns, throttle_ms)

    def _throttle(self, client: int, time_ns: int, throttle_ms: int) -> None:
        track = self._tracks.counter(client, "throttle", "ms")
        if self._throttled_until.get(track, time_ns) < time_ns:
            self._end_throttling([track])
        until_ns = time_ns + throttle_ms * 1_000_000
        self._throttled_until[track] = max(until_ns, self._throttled_until.get(track, 0))
        self._point(track, time_ns, throttle_ms)

    def _end_throttling(self, tracks: list[int]) -> None:
        for track in tracks:
            self._point(track, self._throttled_until.pop(track), 0)

    def _point(self, track: int, time_ns: int, value: int) -> None:
        columns = (np.array([each], np.int64) for each in (track, time_ns, value))
        self._write(counter_packets(*columns))
