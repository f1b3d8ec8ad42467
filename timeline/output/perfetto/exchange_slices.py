"""Exchanges as slices, on a track for each slot between a client and a broker."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dissector.engine.exchanges.exchange_columns import api_names
from dissector.engine.tables.column_types import Coded, distinct
from dissector.engine.tables.exchange_table import NONE, STATUS, Ints
from dissector.view.text.escape import escaped
from timeline.events.words import listed
from timeline.output.perfetto import packets
from timeline.output.perfetto.flows import Flows
from timeline.output.perfetto.protobuf import Mask, MessageColumns
from timeline.output.perfetto.slots import Slots
from timeline.output.perfetto.tracks import Tracks
from timeline.output.perfetto.window_exchanges import WindowExchanges

_NAMES = (
    "connection",
    "version",
    "correlation id",
    "request packet",
    "response packet",
    "request bytes",
    "response bytes",
    "status",
    "errors",
    "topics",
)
"""Annotations of slices: integers, then texts."""


class ExchangeSlices:
    """Writes a slice for each exchange."""

    def __init__(
        self, tracks: Tracks, write: Callable[[bytes], object], mask: Callable[[str], str]
    ) -> None:
        """Start; `write` receives packets, `mask` masks credentials."""
        self._tracks, self._write, self._mask = tracks, write, mask
        self._slots = Slots()
        self._pairs: dict[tuple[int, int], int] = {}

    def add(self, exchanges: WindowExchanges, flows: Flows) -> None:
        """Write the slices of a window."""
        if not len(exchanges):
            return
        table = exchanges.table
        track = self._slot_tracks(exchanges)
        apis = api_names(table)
        strings: list[str] = []
        begins = packets.track_events(packets.BEGIN, track)
        begins.add_integers(packets.NAME_IID, apis.codes + 1, width=5)
        integers = (
            table.connection,
            table.api_version,
            table.correlation_id,
            _from_one(table.request.packet),
            _from_one(table.response.packet),
            table.request.size,
            table.response.size,
        )
        for number, values in enumerate(integers, 1):
            _annotate(begins, number, packets.INT_VALUE, values, values != NONE)
        for number, texts in enumerate(self._texts(exchanges), 1 + len(integers)):
            iids = texts.codes + len(strings) + 1
            has_text = np.array([bool(each) for each in texts.values], np.bool_)[texts.codes]
            strings += texts.values
            _annotate(begins, number, packets.STRING_IID, iids, has_text)
        ends = packets.track_events(packets.END, track)
        _add_flows(begins, flows.begun)
        _add_flows(ends, flows.ended)
        names = [escaped(name or "response without a request") for name in apis.values]
        self._write(packets.texts_packet(names, _NAMES, strings))
        self._write(packets.event_packets(exchanges.begin_ns, begins))
        self._write(packets.event_packets(exchanges.end_ns, ends))

    def _slot_tracks(self, exchanges: WindowExchanges) -> Ints:
        """Return the track of each exchange."""
        codes, found = distinct(exchanges.client << 32 | exchanges.broker)
        pairs = [(each >> 32, each & 0xFFFFFFFF) for each in found.tolist()]
        numbers = [self._pairs.setdefault(pair, len(self._pairs)) for pair in pairs]
        group = np.array(numbers, np.int64)[codes]
        slot = self._slots.assign(group, exchanges.begin_ns, exchanges.end_ns)
        slot_codes, lanes = distinct(codes << 32 | slot)
        tracks = [self._slot_track(pairs[each >> 32], each & 0xFFFFFFFF) for each in lanes.tolist()]
        return np.array(tracks, np.int64)[slot_codes]

    def _slot_track(self, pair: tuple[int, int], slot: int) -> int:
        client, broker = pair
        return self._tracks.child(client, f"to {self._tracks.name(broker)} #{slot + 1}")

    def _texts(self, exchanges: WindowExchanges) -> Sequence[Coded]:
        """Return status, errors and topics; answered exchanges have no status."""
        summaries, rows = exchanges.summaries, exchanges.row
        errors = [", ".join(each) for each in summaries.error_lists]
        topics = [self._mask(escaped(listed(map(str, each)))) for each in summaries.topic_lists]
        return (
            Coded(exchanges.table.status.astype(np.int64), ["", *STATUS[1:]]),
            Coded(summaries.errors[rows], errors),
            Coded(summaries.topics[rows], topics),
        )


def _from_one(packet: Ints) -> Ints:
    """Convert packet numbers to those from 1."""
    return np.where(packet == NONE, NONE, packet + 1)


def _annotate(events: MessageColumns, name: int, field: int, values: Ints, mask: Mask) -> None:
    annotation = MessageColumns(len(values))
    annotation.add_integers(packets.ANNOTATION_NAME_IID, np.full(len(values), name), width=1)
    annotation.add_integers(field, values)
    events.add_messages(packets.ANNOTATION, annotation, mask)


def _add_flows(events: MessageColumns, flows: Sequence[tuple[Ints, Mask]]) -> None:
    for ids, mask in flows:
        events.add_fixed(packets.FLOW, ids.astype(np.uint64), mask)
