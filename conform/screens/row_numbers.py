"""The exchanges of a window as plain numbers, which all rules read again and again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from conform.registry.exchange_row import ExchangeRow
from dissector.engine.tables.exchange_table import NONE, Exchanges


def row_numbers(table: Exchanges) -> list[ExchangeRow]:
    """Return the columns of each exchange, which `Exchange` reads one value at a time."""
    request, response = table.request, table.response
    return list(
        map(
            ExchangeRow,
            _known(table.api_key),
            _known(table.api_version),
            _known(table.correlation_id),
            _known(request.packet, 1),
            _known(response.packet, 1),
            _known(request.time_ns),
            _known(response.time_ns),
            np.where(request.packet == NONE, -1, request.offset).tolist(),
        )
    )


def _known(column: NDArray[np.int64], first: int = 0) -> list[int | None]:
    """Return a column, counted from `first`, with None for NONE."""
    return [None if each == NONE else each + first for each in column.tolist()]
