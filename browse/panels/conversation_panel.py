"""The conversation of a connection: requests and responses in the order of their packets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text
from textual.widget import Widget

from browse.panels.line_list import LineList
from browse.panels.panel import Panel
from dissector.view.text.escape import escaped
from dissector.view.text.summary_line import (
    NOTES,
    error_names,
    latency_text,
    topic_names,
    version_text,
)

_INDENT = 8
"""Indentation of responses."""


@dataclass(frozen=True, slots=True)
class ConversationMessage:
    """
    A message of the conversation.

    Attributes:
        packet: Packet that completed the message.
        time_ns: Time of that packet.
        is_request: Whether the client sent it.
        number: Index of the exchange.
        row: Row of the exchange in `pairs`.
    """

    packet: int
    time_ns: int
    is_request: bool
    number: int
    row: Mapping[str, Any]


def messages_of(rows: Iterable[Mapping[str, Any]]) -> list[ConversationMessage]:
    """Return the messages of a connection in order, given rows of `pairs`."""
    messages = []
    for number, row in enumerate(rows):
        for side in ("request", "response"):
            packet = row[f"{side}_packet"]
            if packet is not None:
                time_ns = row[f"{side}_time_ns"]
                messages.append(
                    ConversationMessage(packet, time_ns, side == "request", number, row)
                )
    return sorted(messages, key=lambda message: (message.packet, message.number))


class ConversationPanel(Panel[int]):
    """The messages of a connection; Enter returns the number of the exchange."""

    def __init__(
        self, title: str, rows: Iterable[Mapping[str, Any]], begin_ns: int | None = None
    ) -> None:
        """
        Create the panel.

        Args:
            title: Both endpoints, such as `10.0.0.1:50000 and 10.0.0.2:9092`.
            rows: Exchanges of the connection, as rows of `pairs`.
            begin_ns: Time of the capture's first packet; by default that of the first message.
        """
        super().__init__(f"Conversation: {title}", "Enter shows the exchange, Esc closes")
        self._messages = messages_of(rows)
        first_ns = min((message.time_ns for message in self._messages), default=0)
        self._begin_ns = first_ns if begin_ns is None else begin_ns

    def contents(self) -> Iterable[Widget]:
        """Return the messages."""
        if self._messages:
            yield LineList(len(self._messages), self._line)
        else:
            yield LineList(1, lambda row: Text("no messages"))

    def on_line_list_chosen(self, event: LineList.Chosen) -> None:
        """Return the exchange of a message."""
        event.stop()
        if self._messages:
            self.dismiss(self._messages[event.row].number)

    def _line(self, at: int) -> Text:
        message = self._messages[at]
        before_ns = self._messages[at - 1].time_ns if at else message.time_ns
        time = f"{(message.time_ns - self._begin_ns) / 1e9:>12.6f}"
        gap = f"{(message.time_ns - before_ns) / 1e9:>+11.6f}"
        arrow = "──▶ " if message.is_request else " " * _INDENT + "◀── "
        color = "red" if _has_defect(message) else "" if message.is_request else "cyan"
        return Text.assemble(
            (f"{message.packet:>7} {time} {gap}  ", "dim"),
            (arrow, "bold"),
            (", ".join(_parts(message)), color),
            no_wrap=True,
        )


def _has_defect(message: ConversationMessage) -> bool:
    row = message.row
    if message.is_request:
        return bool(row["status"] == "unanswered")
    return bool(row["errors"]) or row["status"] == "orphan"


def _parts(message: ConversationMessage) -> Sequence[str]:
    row = message.row
    version = "" if row["api_version"] is None else version_text(row["api_version"])
    parts = [f"{escaped(row['api'] or 'unknown')}{version}"]
    if row["correlation_id"] is not None:
        parts.append(f"id {row['correlation_id']}")
    if message.is_request:
        parts.append(f"{row['request_bytes']:,} bytes")
        parts += [topic_names(row["topics"])] if row["topics"] else []
        note = NOTES.get(row["status"])
    else:
        parts.append(f"{row['response_bytes']:,} bytes")
        parts += [] if row["latency_ms"] is None else [latency_text(row["latency_ms"])]
        parts += [error_names(row["errors"])] if row["errors"] else []
        note = "orphan" if row["status"] == "orphan" else None
    return [*parts, note] if note else parts
