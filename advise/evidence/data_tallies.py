"""Totals of produced batches and of fetches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import zstandard

from advise.evidence.call_tallies import FETCH, PRODUCE
from advise.evidence.tally import Tally
from advise.evidence.window_rows import WindowRows
from dissector.capture.columns import unique
from dissector.engine.fields.message_fields import MessageFields
from dissector.engine.records.batch_scanner import find_batches
from dissector.engine.records.batch_table import Batches
from dissector.engine.records.record_locator import RecordFields, locate_records
from dissector.engine.tables.exchange_table import ANSWERED, NO_RESPONSE, Ints
from dissector.protocol.records.compression import CODEC_MASK
from dissector.protocol.records.layout import CONTROL

_SAMPLED_BATCHES, _SAMPLED_BYTES = 32, 1 << 18
"""Batches and bytes of a client that are compressed on trial."""


class Trial(NamedTuple):
    """
    Batches of a client that were compressed on trial.

    Attributes:
        batches: Their number.
        plain: Their bytes as sent.
        packed: Their bytes when compressed.
    """

    batches: int = 0
    plain: int = 0
    packed: int = 0


class DataTallies:
    """
    Totals of data.

    Attributes:
        produced: Batches by client, connection, topic and partition: `unnumbered` are records
            without a producer id, `unacknowledged` those with acks=0, `wrappers` compressed
            message sets, whose records are not counted, `plain_*` what has no codec.
        fetches: Answered Fetch requests by client and connection.
        trials: Client -> what compression would save.
    """

    def __init__(self) -> None:
        counts = ("batches", "records", "bytes", "wrappers", "unnumbered")
        plain = ("plain_batches", "plain_records", "plain_bytes")
        keys = ("client", "connection", "topic", "partition")
        self.produced = Tally(keys, (*counts, *plain))
        self.unacknowledged = Tally(("client", "connection"), ("count",))
        self.fetches = Tally(
            ("client", "connection"), ("count", "empty", "empty_ns"), most=("max_wait_ms",)
        )
        self.trials: dict[int, Trial] = {}

    def add(self, window: WindowRows) -> None:
        """Add a window."""
        table = window.table
        self._add_unacknowledged(window)
        if not np.isin(table.api_key, (PRODUCE, FETCH)).any():
            return
        fields = locate_records(table, with_results=False)
        self._add_fetches(window, fields)
        is_produced = np.flatnonzero(table.api_key[fields.row] == PRODUCE)
        if not len(is_produced):
            return
        found = find_batches(
            table.data,
            table.carry_over,
            fields.start[is_produced],
            fields.length[is_produced],
            fields.may_be_cut[is_produced],
            message_sets=True,
        )
        self._add_produced(window, fields, is_produced, found)

    def _add_produced(
        self, window: WindowRows, fields: RecordFields, chosen: Ints, found: Batches
    ) -> None:
        field = chosen[found.field]
        row = fields.row[field]
        size = found.end - found.start
        is_plain = (found.attributes & CODEC_MASK == 0).astype(np.int64)
        is_data = (found.attributes & CONTROL == 0) | (found.magic < 2)
        records = np.maximum(found.record_count, 0) * is_data
        topics = window.names.topics.numbers(fields.topics)
        self.produced.add(
            window.of(
                row,
                topic=topics[fields.topic[field]],
                partition=fields.partition[field],
                batches=np.ones(len(field), np.int64),
                records=records,
                bytes=size,
                wrappers=found.is_wrapper.astype(np.int64),
                unnumbered=records * (found.producer_id < 0),
                plain_batches=is_plain,
                plain_records=is_plain * records,
                plain_bytes=is_plain * size,
            )
        )
        self._try_compression(window, window.client[row], found, is_plain)

    def _try_compression(
        self, window: WindowRows, client: Ints, found: Batches, is_plain: Ints
    ) -> None:
        """Compress the payloads of the first batches of each client."""
        compress = zstandard.ZstdCompressor().compress
        candidates = np.flatnonzero((is_plain == 1) & (found.magic == 2))
        for number in unique(client[candidates]).tolist():
            trial = self.trials.get(number, Trial())
            of_client = candidates[client[candidates] == number]
            for at in of_client[: _SAMPLED_BATCHES - trial.batches].tolist():
                if trial.plain >= _SAMPLED_BYTES:
                    break
                start, end = int(found.payload_start[at]), int(found.end[at])
                content = window.table.bytes_at(start, min(end - start, _SAMPLED_BYTES))
                packed = min(len(content), len(compress(content)))
                trial = Trial(trial.batches + 1, trial.plain + len(content), trial.packed + packed)
            self.trials[number] = trial

    def _add_unacknowledged(self, window: WindowRows) -> None:
        table = window.table
        rows = np.flatnonzero((table.api_key == PRODUCE) & (table.status == NO_RESPONSE))
        self.unacknowledged.add(window.of(rows, count=np.ones(len(rows), np.int64)))

    def _add_fetches(self, window: WindowRows, fields: RecordFields) -> None:
        table = window.table
        is_fetch = (table.api_key == FETCH) & (table.status == ANSWERED) & ~window.failed
        rows = np.flatnonzero(is_fetch)
        if not len(rows):
            return
        is_full = np.zeros(len(table), np.bool_)
        is_full[fields.row] = is_full[fields.undecoded] = True
        empty = (~is_full[rows]).astype(np.int64)
        took_ns = np.maximum(table.response.time_ns - table.request.time_ns, 0)[rows]
        waits = np.zeros(len(table), np.int64)
        asked = MessageFields(table, FETCH, "request", ("max_wait_ms",))
        waits[asked.rows] = asked.each("max_wait_ms", 0)
        self.fetches.add(
            window.of(
                rows,
                count=np.ones(len(rows), np.int64),
                empty=empty,
                empty_ns=empty * took_ns,
                max_wait_ms=waits[rows],
            )
        )
