"""Single exchanges for a plot of latencies: all of a small capture, none of a large one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dissector.engine.reading.capture import Window
from dissector.engine.records.record_locator import locate_records
from dissector.engine.tables.column_types import Columns, Integers, Milliseconds, row_count
from dissector.engine.tables.exchange_table import NONE, STATUS

MAX_DOTS = 5_000
"""Most exchanges drawn one by one; a plot of more shows their density."""

_FETCH = frozenset((1, 78))
"""Keys of Fetch and ShareFetch."""
_MISSING = ("unanswered", "waiting")
_ANSWERED = STATUS.index("answered")


@dataclass(frozen=True, slots=True)
class Dot:
    """
    An exchange in the plot.

    Attributes:
        time_ns: Time of the request; of an orphan of the response.
        latency_ns: Latency; None if the response is missing.
        api: Name of the API.
        client_id: Client id.
        packet: Packet of the request, or else of the response.
        errors: Names of its errors.
        is_empty: Whether it is a fetch that brought no records.
    """

    time_ns: int
    latency_ns: int | None
    api: str | None
    client_id: str | None
    packet: int
    errors: tuple[str, ...]
    is_empty: bool


class ExchangeDots:
    """
    The exchanges of a capture, unless there are too many.

    Attributes:
        is_full: Whether the capture has more exchanges than the plot shows: it shows none.
    """

    def __init__(self, most: int = MAX_DOTS) -> None:
        self.is_full = False
        self._most = most
        self._dots: list[Dot] = []
        self._empty: set[int] = set()

    @property
    def dots(self) -> list[Dot]:
        """The exchanges."""
        return self._dots

    def look_for_records(self, window: Window) -> None:
        """Note which fetches of a window brought no records."""
        table = window.exchanges
        is_fetch = np.isin(table.api_key, list(_FETCH)) & (table.status == _ANSWERED)
        if self.is_full or not is_fetch.any():
            return
        fields = locate_records(table)
        is_fetch[fields.row] = is_fetch[fields.undecoded] = False
        self._empty.update((table.request.packet[is_fetch] + 1).tolist())

    def add(self, columns: Columns) -> None:
        """Add columns of `pairs`."""
        if self.is_full or len(self._dots) + row_count(columns) > self._most:
            self.is_full = True
            self._dots, self._empty = [], set()
            return
        latency = columns["latency_ms"]
        assert isinstance(latency, Milliseconds)
        latencies = latency.values_ns.tolist()
        times = [_values(columns, f"{side}_time_ns") for side in ("request", "response")]
        packets = [_values(columns, f"{side}_packet") for side in ("request", "response")]
        for row in range(row_count(columns)):
            if latencies[row] == NONE and columns["status"].value(row) not in _MISSING:
                continue  # no response is due, or the request is not in the capture
            at = 1 if times[0][row] == NONE else 0
            api: Any = columns["api"].value(row)
            client_id: Any = columns["client_id"].value(row)
            packet = packets[at][row]
            errors: Any = columns["errors"].value(row)
            is_empty = packet in self._empty and api in ("Fetch", "ShareFetch")
            self._dots.append(
                Dot(
                    times[at][row],
                    None if latencies[row] == NONE else latencies[row],
                    api,
                    client_id,
                    packet,
                    tuple(errors or ()),
                    is_empty,
                )
            )


def _values(columns: Columns, name: str) -> list[Any]:
    column = columns[name]
    assert isinstance(column, Integers)
    values: list[Any] = column.values.tolist()
    return values
