"""The place of a row of the list of records in the tree of its exchange."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.exchanges.exchange_records import record_rows
from dissector.protocol.embedded.sasl_tokens import MASK
from dissector.protocol.records.field import UnreadBatch
from dissector.protocol.records_fields import records_fields

_COMPARED = ("packet", "topic", "partition", "offset", "timestamp_ms", "sequence")
_CUT = ("key", "value")
"""Columns whose cells in the list may be cut."""

_MASK = MASK.encode()


def record_path(exchange: Exchange, row: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Return the names of the nodes that lead to the record of a row, from `request` on."""
    wanted = [row[name] for name in _COMPARED]
    for path, record in zip(_paths(exchange), record_rows(exchange), strict=False):
        if [record[name] for name in _COMPARED] == wanted and all(
            _begins(record[name], row[name]) for name in _CUT
        ):
            return path
    return None


def _begins(data: object, cell: object) -> bool:
    """Return whether a cell may be the begin of a key or a value; a masked one may."""
    if isinstance(data, bytes) and isinstance(cell, bytes):
        return data.startswith(cell) or cell == _MASK
    return data is cell


def _paths(exchange: Exchange) -> Iterator[tuple[str, ...]]:
    """Yield the path of each record, in the order of `record_rows`."""
    for message in exchange.messages:
        for field in records_fields(message):
            topic, partition = f"[{field.topic_index}]", f"[{field.partition_index}]"
            around = (message.kind, "body", field.topics, topic, field.partitions, partition)
            for number, batch in enumerate(field.batches):
                if isinstance(batch, UnreadBatch):
                    continue
                for index in range(len(batch.records)):
                    yield (*around, "records", f"[{number}]", f"[{index}]")
