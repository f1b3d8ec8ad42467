"""Transactional batches in Fetch responses, found in columns."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from dissector.engine.records.record_locator import find_field_batches, locate_records
from dissector.engine.tables.exchange_table import Exchanges
from dissector.protocol.records.layout import CONTROL, TRANSACTIONAL

FETCH = 1


class FetchedBatches(NamedTuple):
    """A Fetch, given by its row in the window, with batches of a producer and epoch."""

    row: int
    producer_id: int
    epoch: int


def fetched_batches(table: Exchanges, producers: Collection[int]) -> list[FetchedBatches]:
    """Return Fetch exchanges with transactional records of some producers."""
    rows = np.flatnonzero(table.api_key == FETCH)
    if not len(rows) or not producers:
        return []
    chosen = table.rows(rows)
    fields = locate_records(chosen)
    found = find_field_batches(chosen, fields)
    producer_id = found.producer_id
    is_wanted = found.attributes & (TRANSACTIONAL | CONTROL) == TRANSACTIONAL
    is_wanted &= (found.magic == 2) & np.isin(producer_id, list(producers))
    columns = (
        rows[fields.row[found.field[is_wanted]]],
        producer_id[is_wanted],
        found.producer_epoch[is_wanted],
    )
    each = np.unique(np.stack(columns, axis=1), axis=0, return_index=True)[0]
    return [FetchedBatches(*values) for values in each.tolist()]
