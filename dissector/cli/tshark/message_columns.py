"""Values of messages by name, as `dissect -e` prints them: of itself, its exchange, its body."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from operator import attrgetter
from typing import Any

from dissector.cli.capture_source import Source
from dissector.cli.presentation.operand_columns import parse_operands
from dissector.column_catalogue import EXCHANGES, MESSAGES
from dissector.engine.reading.packet_order import OrderedMessage
from dissector.filter import Column, Name, kinds, values_of
from dissector.view.tables.secret_cells import mask_cell
from dissector.view.text.escape import escaped
from dissector.view.text.summary_line import NOTES, MessageSummary
from dissector.view.text.time_style import FRAME_TIMES
from dissector.view.text.value_text import json_text


def message_summary(each: OrderedMessage, show_secrets: bool) -> MessageSummary:
    """Return what one line says of a message."""
    exchange, message = each.exchange, each.message
    ends = exchange.client, exchange.broker
    is_request = message.kind == "request"
    return MessageSummary(
        message=message,
        packet=each.packet,
        time_ns=each.time_ns,
        connection=exchange.connection,
        source=ends[0] if is_request else ends[1],
        target=ends[1] if is_request else ends[0],
        api=exchange.api,
        topics=exchange.topics if is_request else [],
        errors=[] if is_request else exchange.errors,
        latency_ms=None if is_request else exchange.latency_ms,
        note=NOTES.get(exchange.status, ""),
        problems=len(exchange.problems_of(message)),
        show_secrets=show_secrets,
    )


def field_names(source: Source, fields: Iterable[str]) -> list[Name]:
    """Return the columns and fields named by `-e`."""
    own = {each.name for each in MESSAGES} - {each.name for each in EXCHANGES}
    return [
        Name(text, (Column(text),), (kinds.text,))
        if text in own or text in FRAME_TIMES
        else parse_operands(source, [text])[0]
        for text in fields
    ]


def field_rows(
    source: Source,
    messages: Iterable[OrderedMessage],
    names: list[Name],
    show_secrets: bool,
) -> Iterator[list[list[str]]]:
    """Yield the values of each field, message by message."""
    for each in messages:
        begin_ns = source.begin_ns
        rows = [_MessageColumns(each, show_secrets, name.text, begin_ns) for name in names]
        yield [
            [_cell(value) for value in values_of(row, name)]
            for row, name in zip(rows, names, strict=True)
        ]


_OWN: Mapping[str, Callable[[MessageSummary], object]] = {
    "packet": attrgetter("packet"),
    "time_ns": attrgetter("time_ns"),
    "source": attrgetter("source"),
    "target": attrgetter("target"),
    "kind": attrgetter("message.kind"),
}
"""Columns that only messages have."""


class _MessageColumns:
    """
    The values that `-e` can print for a message: its own body, and its exchange's columns.

    Names of `frame` are about the packet of the message alone.
    """

    def __init__(self, each: OrderedMessage, show_secrets: bool, text: str, begin_ns: int) -> None:
        self.begin_ns = begin_ns
        self.is_frame = text.startswith("frame.")
        self.each = each
        self.show_secrets = show_secrets

    def column(self, name: str) -> Any:
        exchange, own = self.each.exchange, self.each.message.kind
        if name in FRAME_TIMES:
            return FRAME_TIMES[name](self.each.time_ns, self.begin_ns)
        if name == "bytes":
            return None if exchange.is_logged else self.each.message.size
        if name in _OWN:
            return _OWN[name](message_summary(self.each, self.show_secrets))
        if self.is_frame and not name.startswith(own):
            return []
        value = exchange.column(name)
        return value if self.show_secrets else mask_cell(name, value, exchange.known_secrets)

    def body(self, kind: str) -> Any:
        exchange, message = self.each.exchange, self.each.message
        if message.kind != kind:
            return None
        from dissector.view.json.body import body_json

        request = exchange.request if kind == "response" else None
        return body_json(message, request, show_secrets=self.show_secrets)


def _cell(value: object) -> str:
    if value is None:
        return ""
    return escaped(value if isinstance(value, str) else json_text(value))
