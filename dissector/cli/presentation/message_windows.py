"""The windows of a capture, as `dissect` puts their messages in packet order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from dissector.engine.exchanges.topic_resolution import LateNames
from dissector.engine.reading.live_requests import LiveRequests
from dissector.engine.reading.packet_order import OrderedBatch, OrderedMessage, PacketOrderBuffer
from dissector.engine.tables.column_types import Columns, Row
from dissector.engine.tables.exchange_table import NONE
from dissector.view.json.message_rows import (
    AnyWindow,
    LastingWindow,
    ObjectWindow,
    RowsApart,
    TableWindow,
)

if TYPE_CHECKING:
    from dissector.cli.capture_source import Source

REQUEST = 0
"""Index of requests in a window's packet numbers."""

MAX_WAITING_LINES = 1 << 16
"""Maximum number of waiting rows of messages read as objects."""

Ordered: TypeAlias = tuple[AnyWindow, int]
"""A window, and the first packet of messages that may still come after it."""


def ordered_batches(windows: Iterable[Ordered]) -> Iterator[OrderedBatch[AnyWindow]]:
    """Yield the messages of windows in the order of the capture's packets, in batches."""
    order = PacketOrderBuffer[AnyWindow]()
    for window, low_watermark in windows:
        yield from order.add(window, window.packets)
        yield from order.ready(low_watermark)
    yield from order.drain()


def message_windows(source: Source) -> Iterator[Ordered]:
    """Yield the windows of a capture, with topics by name, and waiting requests, each once."""
    names, live_requests = source.capture.names, LiveRequests(source.passes)
    for each in source.tables():
        window: AnyWindow
        if isinstance(each, tuple):
            reading = source.capture.reading
            assert reading is not None
            window = TableWindow(*each, partial(reading.exchange, each[0], names=names))
        else:
            window = ObjectWindow(list(each))
        if live_requests:
            window.packets[window.already_shown(live_requests), REQUEST] = NONE
        yield window, 0
        requests = ObjectWindow(list(live_requests.to_show(source.in_flight())))
        yield requests, source.low_watermark


def lasting_windows(
    source: Source, row_of_message: Callable[[OrderedMessage], Row]
) -> Iterator[Ordered]:
    """
    Yield the windows of files without a filter; those with unnamed topic ids wait for the names.

    They wait without their bytes, as the rows of `pairs` do (`LateNames`), so that the capture is
    not read twice for names that come late or never.
    """
    capture = source.capture
    late, waiting = LateNames(capture.names), deque[tuple[RowsApart, int]]()
    lines = 0

    def released(parts: Iterable[Columns]) -> Iterator[Ordered]:
        nonlocal lines
        for columns in parts:
            apart, low_watermark = waiting.popleft()
            lines -= len(apart.rows)
            yield LastingWindow(columns, apart), low_watermark

    for window in source.each_window(gleaning=True):
        reading, table = capture.reading, window.exchanges
        if not len(table):
            continue
        if not waiting and not source.selection.is_in_columns(window):
            yield ObjectWindow(list(capture.exchanges_of(window))), source.low_watermark
            continue
        assert reading is not None
        columns = capture.unresolved_columns(window)
        exchange = partial(reading.exchange, table, names=capture.names)
        apart = RowsApart.of(TableWindow(table, columns, exchange), row_of_message)
        waiting.append((apart, source.low_watermark))
        lines += len(apart.rows)
        if lines > MAX_WAITING_LINES:
            capture.names.read_ahead()
        del window, table, exchange
        yield from released(late.add(columns))
    yield from released(late.finish())
