"""The exchanges of a window as plain numbers, which all rules read again and again."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from conform.registry.exchange_row import ExchangeRow
from dissector.engine.tables.exchange_table import NONE, Exchanges

Row = TypeVar("Row", bound=tuple[Any, ...])


def named_rows(kind: type[Row], columns: Iterable[Iterable[Any]]) -> list[Row]:
    """Return a named tuple for each row of all fields, without a call of its own constructor."""
    return list(map(partial(tuple.__new__, kind), zip(*columns, strict=True)))


def row_numbers(table: Exchanges) -> list[ExchangeRow]:
    """Return the columns of each exchange, which `Exchange` reads one value at a time."""
    request, response = table.request, table.response
    return named_rows(
        ExchangeRow,
        (
            _known(table.api_key),
            _known(table.api_version),
            _known(table.correlation_id),
            _known(request.packet, 1),
            _known(response.packet, 1),
            _known(request.time_ns),
            _known(response.time_ns),
            np.where(request.packet == NONE, -1, request.offset).tolist(),
        ),
    )


def _known(column: NDArray[np.int64], first: int = 0) -> list[int | None]:
    """Return a column, counted from `first`, with None for NONE."""
    return [None if each == NONE else each + first for each in column.tolist()]
