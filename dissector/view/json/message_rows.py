"""
Rows of messages in columns, as `dissect` prints them.

They are derived in bulk from the columns of `pairs`, and for JSON from the texts of bodies.
The rows of messages of unusual exchanges, which are decoded as objects, become columns too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.reading.live_requests import LiveRequests
from dissector.engine.reading.packet_order import OrderedBatch, OrderedMessage
from dissector.engine.tables.column_types import (
    Coded,
    Column,
    Columns,
    Integers,
    JsonTexts,
    Milliseconds,
    Row,
    select_rows,
)
from dissector.engine.tables.columns_of import columns_of, with_inserted
from dissector.engine.tables.concatenate import ColumnConcatenator
from dissector.engine.tables.exchange_table import NONE, Exchanges, Ints
from dissector.protocol.api import KINDS
from dissector.protocol.headers import API_VERSIONS
from dissector.protocol.messages import UNSUPPORTED_VERSION

Bools: TypeAlias = NDArray[np.bool_]

MESSAGE_KINDS = {"body": JsonTexts}
"""The kinds of columns of rows that are decoded as objects."""

_REFUSAL_BYTES = 6
"""Bytes of an ApiVersions refusal at least: its header and the error code."""


@dataclass(slots=True)
class TableWindow:
    """
    The exchanges of a window in columns.

    Attributes:
        table: The exchanges.
        columns: Their columns of `pairs`.
        exchange: Returns one of them as an object.
        needs_objects: Exchanges that have to be decoded as objects.
        packets: [exchanges, 2]: the packets that completed request and response.
    """

    table: Exchanges
    columns: Columns
    exchange: Callable[[int], Exchange]
    needs_objects: Bools = field(init=False)
    packets: Ints = field(init=False)

    def already_shown(self, live_requests: LiveRequests) -> list[bool]:
        """Return for each exchange whether its request was shown already."""
        keys = zip(self.table.connection.tolist(), self.table.request.offset.tolist(), strict=True)
        return [live_requests.has_shown(*key) for key in keys]

    def __post_init__(self) -> None:
        self.needs_objects = _exchanges_need_objects(self.table, self.columns)
        self.packets = _sides(self.table, "packet")


@dataclass(slots=True)
class ObjectWindow:
    """
    Exchanges as objects.

    Attributes:
        exchanges: The exchanges.
        packets: See `TableWindow`.
    """

    exchanges: Sequence[Exchange]
    packets: Ints = field(init=False)

    def already_shown(self, live_requests: LiveRequests) -> list[bool]:
        """Return for each exchange whether its request was shown already."""
        return [
            live_requests.has_shown(each.connection, each.request_offset) for each in self.exchanges
        ]

    def __post_init__(self) -> None:
        numbers = [(each.request_packet, each.response_packet) for each in self.exchanges]
        packets = [[packet - 1 if packet else NONE for packet in both] for both in numbers]
        self.packets = np.array(packets, np.int64).reshape(-1, 2)


class RowsApart(NamedTuple):
    """
    The rows of a window's messages that its columns do not describe.

    Attributes:
        needs_objects: See `TableWindow`.
        rows: By the row of the exchange, and the side.
    """

    needs_objects: Bools
    rows: Mapping[tuple[int, int], Row]

    @classmethod
    def of(cls, window: TableWindow, row_of_message: Callable[[OrderedMessage], Row]) -> RowsApart:
        """Make them."""
        are_apart = window.needs_objects[:, None] & (window.packets != NONE)
        rows = {
            (row, side): row_of_message(_ordered_message(window, row, side))
            for row, side in np.argwhere(are_apart).tolist()
        }
        return cls(window.needs_objects, rows)


class LastingWindow:
    """
    The exchanges of a window in columns, without its bytes.

    Attributes:
        columns: See `TableWindow`.
        needs_objects: See `TableWindow`.
        packets: See `TableWindow`.
        rows: See `RowsApart`.
    """

    def __init__(self, columns: Columns, apart: RowsApart) -> None:
        self.columns = columns
        self.needs_objects, self.rows = apart
        numbers = _both_sides(columns, "packet")
        self.packets = np.where(numbers == NONE, NONE, numbers - 1)


AnyWindow: TypeAlias = TableWindow | ObjectWindow | LastingWindow


def message_rows(
    batch: OrderedBatch[AnyWindow],
    row_of_message: Callable[[OrderedMessage], Row],
    with_details: Callable[[Exchanges, Columns], Iterable[Columns]],
    shown: Callable[[Columns], Columns] = lambda columns: columns,
) -> Columns:
    """
    Return the rows of messages.

    Args:
        batch: The messages, in order.
        row_of_message: Returns the row of a message that is decoded as an object.
        with_details: Returns exchanges with more columns, such as `with_bodies`; not called for
            windows without bytes.
        shown: Returns the rows of messages in the columns that `row_of_message` has.
    """
    concatenator, total = ColumnConcatenator(), 0
    row_of = np.full(len(batch.row), -1, np.int64)
    numbers: list[Ints] = []
    for index, window in enumerate(batch.windows):
        if isinstance(window, ObjectWindow):
            continue
        of_window = np.flatnonzero((batch.window == index) & ~_rows_need_objects(window, batch.row))
        rows, row_numbers = np.unique(batch.row[of_window], return_inverse=True)
        if not len(rows):
            continue
        row_of[of_window] = total + row_numbers
        total += len(rows)
        columns = select_rows(window.columns, rows)
        parts: Iterable[Columns] = [columns]
        if isinstance(window, TableWindow):
            parts = with_details(window.table.rows(rows), columns)
        for part in parts:
            concatenator.add(part)
        numbers.append(np.stack([_both_sides(columns, name) for name in ("time_ns", "bytes")]))
    object_messages = np.flatnonzero(row_of < 0)
    object_rows = [_object_row(batch, at, row_of_message) for at in object_messages.tolist()]
    apart = columns_of(object_rows, MESSAGE_KINDS)
    if not total:
        return apart
    is_in_columns = row_of >= 0
    time_ns, size = np.concatenate(numbers, axis=1)
    exchange, side = row_of[is_in_columns], batch.side[is_in_columns]
    in_columns = shown(
        _message_columns(
            select_rows(concatenator.columns(), exchange),
            side,
            batch.packet[is_in_columns],
            time_ns[exchange, side],
            size[exchange, side],
        )
    )
    if not object_rows:
        return in_columns
    before = np.cumsum(is_in_columns, dtype=np.int64)
    return with_inserted(in_columns, before[object_messages], apart)


def _rows_need_objects(window: TableWindow | LastingWindow, rows: Ints) -> Bools:
    """Return the mask of rows that need objects in this window; arbitrary for other windows."""
    needs_objects: Bools = window.needs_objects[np.minimum(rows, len(window.needs_objects) - 1)]
    return needs_objects


def _object_row(
    batch: OrderedBatch[AnyWindow], at: int, row_of_message: Callable[[OrderedMessage], Row]
) -> Row:
    """Return the row of a message that no columns describe."""
    window, row, side = batch.windows[batch.window[at]], int(batch.row[at]), int(batch.side[at])
    if isinstance(window, LastingWindow):
        return window.rows[row, side]
    return row_of_message(_ordered_message(window, row, side))


def _ordered_message(window: TableWindow | ObjectWindow, row: int, side: int) -> OrderedMessage:
    """Return a message as an object."""
    exchange = window.exchange(row) if isinstance(window, TableWindow) else window.exchanges[row]
    message = exchange.response if side else exchange.request
    assert message is not None
    time_ns = exchange.response_time_ns if side else exchange.request_time_ns
    packet = int(window.packets[row, side])
    return OrderedMessage(packet + 1, side, time_ns or 0, exchange, message)


def _sides(table: Exchanges, name: str) -> Ints:
    """Return a column of requests beside the one of responses."""
    return np.stack([getattr(side, name) for side in (table.request, table.response)], axis=1)


def _both_sides(columns: Columns, name: str) -> Ints:
    """Return a column of requests beside the one of responses."""
    sides = [columns[f"{kind}_{name}"] for kind in KINDS]
    return np.stack([each.values for each in sides if isinstance(each, Integers)], axis=1)


def _exchanges_need_objects(table: Exchanges, columns: Columns) -> Bools:
    """Return the exchanges that the columns do not describe completely."""
    needs_objects: Bools = table.token | table.answers_acks_0 | (table.api_key == NONE)
    for frames in (table.request, table.response):
        needs_objects |= (frames.start != NONE) & (frames.captured_bytes != frames.size)
    problems = columns["problems"]
    assert isinstance(problems, Coded)
    has_problems = np.array([bool(each) for each in problems.values], np.bool_)
    needs_objects |= has_problems[problems.codes]
    response = table.response
    is_api_versions = (table.api_key == API_VERSIONS) & (response.start != NONE)
    may_be_refusal = np.flatnonzero(is_api_versions & (response.captured_bytes >= _REFUSAL_BYTES))
    needs_objects[may_be_refusal] |= (
        table.int16_at(response.start[may_be_refusal] + 4) == UNSUPPORTED_VERSION
    )
    return needs_objects


def _message_columns(
    columns: Columns, side: Ints, packet: Ints, time_ns: Ints, size: Ints
) -> Columns:
    """Return the columns of messages, given the columns of each message's exchange."""
    is_request = side == 0
    latency = columns["latency_ms"]
    assert isinstance(latency, Milliseconds)
    body = {"body": _body_column(is_request, columns)} if KINDS[0] in columns else {}
    return {
        "capture": columns["capture"],
        "packet": Integers(packet + 1),
        "time_ns": Integers(time_ns),
        "connection": columns["connection"],
        "source": _choose_column(is_request, columns["client"], columns["broker"]),
        "target": _choose_column(is_request, columns["broker"], columns["client"]),
        "kind": Coded(side, KINDS),
        "api_key": columns["api_key"],
        "api": columns["api"],
        "api_version": columns["api_version"],
        "correlation_id": columns["correlation_id"],
        "client_id": _value_where(is_request, columns["client_id"], None),
        "bytes": Integers(size),
        "status": columns["status"],
        "latency_ms": Milliseconds(np.where(is_request, NONE, latency.values_ns)),
        "errors": _value_where(~is_request, columns["errors"], []),
        "topics": _value_where(is_request, columns["topics"], []),
        "problems": Coded(np.zeros_like(side), [[]]),
        **body,
    }


def _choose_column(first: Bools, a: Column, b: Column) -> Coded:
    """Return values of one column where `first` is set, and of another elsewhere."""
    assert isinstance(a, Coded)
    assert isinstance(b, Coded)
    return Coded(np.where(first, a.codes, len(a.values) + b.codes), [*a.values, *b.values])


def _value_where(mask: Bools, column: Column, other: Any) -> Coded:
    """Return the values of a column where `mask` is set, and `other` elsewhere."""
    assert isinstance(column, Coded)
    return Coded(np.where(mask, column.codes, len(column.values)), [*column.values, other])


def _body_column(is_request: Bools, columns: Columns) -> JsonTexts:
    request, response = (columns[kind] for kind in KINDS)
    assert isinstance(request, JsonTexts)
    assert isinstance(response, JsonTexts)
    return JsonTexts(
        np.where(is_request, request.start, response.start),
        np.where(is_request, request.length, response.length),
        request.buffers,
    )
