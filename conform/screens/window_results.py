"""The partitions of the Produce and Fetch exchanges of a window as objects, read from the tape."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from conform.evidence.batch_summaries import BatchSummaries
from conform.registry.partition_results import PartitionResult, PlainBatch
from conform.registry.screened_columns import Bools, Partitions, ScreenedPartitions
from conform.registry.usual_values import is_answered_fetch
from conform.screens.row_numbers import named_rows
from dissector.engine.records.batch_table import VALID
from dissector.engine.tables.exchange_table import NONE, Exchanges
from dissector.protocol.headers import FETCH, PRODUCE
from dissector.protocol.records.layout import TRANSACTIONAL

Ints: TypeAlias = NDArray[np.int64]

_LEADER_EPOCH_AT = 12
"""Its place in a batch."""

_PATHS = {
    PRODUCE: ("responses[{}].partition_responses[{}]", "topic_data[{}].partition_data[{}].records"),
    FETCH: ("responses[{}].partitions[{}]", "responses[{}].partitions[{}].records"),
}


class WindowResults:
    """
    The partitions of those exchanges whose messages are canonical and whose batches are plain.

    Args:
        partitions: The columns of all exchanges.
        is_canonical: Whether the messages of an exchange are canonical.
        summaries: The batches.
    """

    def __init__(
        self, partitions: ScreenedPartitions, is_canonical: Bools, summaries: BatchSummaries
    ) -> None:
        rows, request, response = partitions.rows, partitions.request, partitions.response
        is_known = is_canonical & rows.is_plain
        is_produced = is_known & rows.is_of(PRODUCE) & partitions.is_same
        is_fetched = is_known & is_answered_fetch(rows)
        produced = np.flatnonzero(is_produced[request.row])
        fetched = np.flatnonzero(is_fetched[response.row])
        # Produce in the order of its request, Fetch in that of its response.
        answer = np.concatenate([partitions.answer[produced], fetched])
        row = response.row[answer]
        order = np.argsort(row, kind="stable")
        answer, row = answer[order], row[order]

        def columns(name: str) -> list[int]:
            own = [getattr(request, name)[produced], getattr(response, name)[fetched]]
            found: list[int] = np.concatenate(own)[order].tolist()
            return found

        fields = [partitions.fields_of(request)[produced], partitions.fields_of(response)[fetched]]
        field = np.concatenate(fields)[order]
        numbers = np.arange(len(rows.table))
        begin, end = (np.searchsorted(row, numbers, side) for side in ("left", "right"))
        self._is_known: list[bool] = (is_produced | is_fetched).tolist()
        self._begin, self._end = begin.tolist(), end.tolist()
        topics = topic_names(rows.table, response, answer)
        transactions = _transactions(rows.table, request, produced) + [None] * len(fetched)
        batches, first_batch = _batches(rows.table, summaries)
        paths = zip(
            rows.table.api_key[row].tolist(),
            response.topic_index[answer].tolist(),
            response.index[answer].tolist(),
            columns("topic_index"),
            columns("index"),
            strict=True,
        )
        own_paths = [_paths(*each) for each in paths]
        # A field of -1 has none: its slice begins at the end.
        own_batches = [
            None if records < 0 else batches[first_batch[each] : first_batch[each + 1]]
            for records, each in zip(columns("records"), field.tolist(), strict=True)
        ]
        self._results = named_rows(
            PartitionResult,
            (
                topics,
                response.number[answer].tolist(),
                [path for path, _ in own_paths],
                [path for _, path in own_paths],
                np.append(summaries.fields.acks, NONE)[field].tolist(),
                response.error[answer].tolist(),
                response.offset[answer].tolist(),
                response.start[answer].tolist(),
                own_batches,
                [transactions[each] for each in order.tolist()],
            ),
        )

    def of(self, row: int) -> list[PartitionResult] | None:
        """Return the partitions of an exchange; None if only its decoded messages show them."""
        if not self._is_known[row]:
            return None
        return self._results[self._begin[row] : self._end[row]]


@lru_cache(4096)
def _paths(key: int, topic: int, index: int, own_topic: int, own_index: int) -> tuple[str, str]:
    """Return the paths of a partition and of its records; most messages share a few."""
    path, records_path = _PATHS[key]
    return path.format(topic, index), records_path.format(own_topic, own_index)


def topic_names(table: Exchanges, side: Partitions, rows: Ints) -> list[str | UUID]:
    """Return the topics of some partitions: names, or ids."""
    _, first, index = np.unique(side.topic[rows], return_index=True, return_inverse=True)
    own = rows[first]
    distinct = [
        _name(table.bytes_at(start, size), is_id)
        for start, size, is_id in zip(
            side.topic_at[own].tolist(),
            side.topic_size[own].tolist(),
            side.is_id[own].tolist(),
            strict=True,
        )
    ]
    return [distinct[each] for each in index.tolist()]


def _transactions(table: Exchanges, side: Partitions, rows: Ints) -> list[str | None]:
    """Return the transactional ids of some partitions."""
    places = zip(
        side.transaction_at[rows].tolist(), side.transaction_size[rows].tolist(), strict=True
    )
    return [None if size < 0 else table.bytes_at(at, size).decode() for at, size in places]


def _name(content: bytes, is_id: bool) -> str | UUID:
    return UUID(bytes=content) if is_id else content.decode()


def _batches(
    table: Exchanges, summaries: BatchSummaries
) -> tuple[list[PlainBatch | None], list[int]]:
    """Return the batches of all fields, and the first of each field, with their end."""
    batches, count = summaries.batches, len(summaries.fields.row)
    if batches is None:
        return [], [0] * (count + 1)
    columns = [
        batches.base_offset,
        summaries.columns.last_offset_delta,
        batches.producer_id,
        batches.producer_epoch,
        batches.base_sequence,
        leader_epochs(table, summaries),
        batches.attributes & TRANSACTIONAL != 0,
    ]
    found: list[PlainBatch | None] = [*named_rows(PlainBatch, (each.tolist() for each in columns))]
    for message in np.flatnonzero(batches.magic < 2).tolist():
        found[message] = None
    first = np.searchsorted(batches.field, np.arange(count + 1))
    return found, first.tolist()


def leader_epochs(table: Exchanges, summaries: BatchSummaries) -> Ints:
    """Return the leader epoch of each batch of magic 2; 0 in fields that are not valid."""
    batches = summaries.batches
    assert batches is not None
    epochs = np.zeros(len(batches), np.int64)
    known = np.flatnonzero((batches.magic == 2) & (batches.state[batches.field] == VALID))
    place = batches.start[known] + _LEADER_EPOCH_AT
    epochs[known] = table.int16_at(place) << 16 | table.int16_at(place + 2) & 0xFFFF
    return epochs
