"""Exchanges of a window, with processes and times of the trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dissector.engine.exchanges.fact_columns import ExchangeSummaries
from dissector.engine.reading.capture import Capture, Window
from dissector.engine.tables.column_types import distinct
from dissector.engine.tables.exchange_table import NONE, Exchanges, Ints
from timeline.events.words import client_name
from timeline.output.perfetto.tracks import Tracks


@dataclass(frozen=True, slots=True)
class WindowExchanges:
    """
    Exchanges in the order of their ends.

    Attributes:
        table: The exchanges.
        row: Row of each exchange in the window, to index the summaries.
        summaries: Errors, topics and client ids of the window.
        client: Process of the client.
        broker: Process of the broker.
        begin_ns: Time of the request; if missing, of the response.
        end_ns: Time of the response; if missing, of the request.
    """

    table: Exchanges
    row: Ints
    summaries: ExchangeSummaries
    client: Ints
    broker: Ints
    begin_ns: Ints
    end_ns: Ints

    def __len__(self) -> int:
        return len(self.row)


def window_exchanges(
    capture: Capture,
    window: Window,
    rows: Ints | None,
    tracks: Tracks,
    mask: Callable[[str], str],
) -> WindowExchanges:
    """
    Return exchanges of a window.

    Args:
        capture: The capture.
        window: The newest window of the capture.
        rows: Selected rows; None for all.
        tracks: Tracks, extended by a process for each client and broker.
        mask: Masks credentials in names.
    """
    table, summaries = window.exchanges, capture.known_of(window)
    rows = np.arange(len(table)) if rows is None else rows
    request_ns, response_ns = table.request.time_ns[rows], table.response.time_ns[rows]
    begin_ns = np.where(request_ns == NONE, response_ns, request_ns)
    # Captured times may decrease slightly.
    end_ns = np.maximum(begin_ns, response_ns)
    order = np.argsort(end_ns, kind="stable")
    rows = rows[order]
    chosen = table.rows(rows)
    client, broker = _processes(capture, chosen, summaries.client_id[rows], summaries, tracks, mask)
    return WindowExchanges(chosen, rows, summaries, client, broker, begin_ns[order], end_ns[order])


def _processes(
    capture: Capture,
    table: Exchanges,
    client_id: Ints,
    summaries: ExchangeSummaries,
    tracks: Tracks,
    mask: Callable[[str], str],
) -> tuple[Ints, Ints]:
    """Return the processes of client and broker of each exchange."""
    assert capture.reading is not None
    sides, side = distinct(table.connection * 2 + table.client)
    ends = capture.reading.endpoints.of_all(side >> 1)
    codes, found = distinct(sides * len(summaries.client_ids) + client_id)
    clients, brokers = [], []
    for code in found.tolist():
        number, client_code = divmod(code, len(summaries.client_ids))
        at = int(side[number]) & 1
        name = client_name(summaries.client_ids[client_code], ends[number][at])
        clients.append(tracks.process("client", mask(name)))
        brokers.append(tracks.process("broker", ends[number][1 - at]))
    return np.array(clients, np.int64)[codes], np.array(brokers, np.int64)[codes]
