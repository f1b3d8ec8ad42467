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
"""How far responses are to the right of requests."""


@dataclass(frozen=True, slots=True)
class Turn:
    """
    A message of the conversation.

    Attributes:
        packet: The packet that completed it.
        time_ns: When.
        is_request: Whether the client sent it.
        number: Which of the exchanges it belongs to.
        row: That exchange, a row of `pairs`.
    """

    packet: int
    time_ns: int
    is_request: bool
    number: int
    row: Mapping[str, Any]


def turns_of(rows: Iterable[Mapping[str, Any]]) -> list[Turn]:
    """Return the messages of the exchanges of a connection, rows of `pairs`, in order."""
    turns = []
    for number, row in enumerate(rows):
        for side in ("request", "response"):
            packet = row[f"{side}_packet"]
            if packet is not None:
                time_ns = row[f"{side}_time_ns"]
                turns.append(Turn(packet, time_ns, side == "request", number, row))
    return sorted(turns, key=lambda turn: (turn.packet, turn.number))


class ConversationPanel(Panel[int]):
    """The messages of a connection; Enter returns the number of the exchange."""

    def __init__(self, title: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """
        Take the exchanges.

        Args:
            title: Both ends: `10.0.0.1:50000 and 10.0.0.2:9092`.
            rows: The exchanges of the connection, rows of `pairs`.
        """
        super().__init__(f"Conversation: {title}", "Enter goes to the exchange, Esc closes")
        self._turns = turns_of(rows)
        self._begin_ns = min((turn.time_ns for turn in self._turns), default=0)

    def contents(self) -> Iterable[Widget]:
        """Return the messages."""
        if self._turns:
            yield LineList(len(self._turns), self._line)
        else:
            yield LineList(1, lambda row: Text("no messages"))

    def on_line_list_chosen(self, event: LineList.Chosen) -> None:
        """Return the exchange of a message."""
        event.stop()
        if self._turns:
            self.dismiss(self._turns[event.row].number)

    def _line(self, at: int) -> Text:
        turn = self._turns[at]
        before_ns = self._turns[at - 1].time_ns if at else turn.time_ns
        time = f"{(turn.time_ns - self._begin_ns) / 1e9:>12.6f}"
        gap = f"{(turn.time_ns - before_ns) / 1e9:>+11.6f}"
        arrow = "──▶ " if turn.is_request else " " * _INDENT + "◀── "
        color = "red" if _has_defect(turn) else "" if turn.is_request else "cyan"
        return Text.assemble(
            (f"{turn.packet:>7} {time} {gap}  ", "dim"),
            (arrow, "bold"),
            (", ".join(_parts(turn)), color),
            no_wrap=True,
        )


def _has_defect(turn: Turn) -> bool:
    row = turn.row
    if turn.is_request:
        return bool(row["status"] == "unanswered")
    return bool(row["errors"]) or row["status"] == "orphan"


def _parts(turn: Turn) -> Sequence[str]:
    row = turn.row
    version = "" if row["api_version"] is None else version_text(row["api_version"])
    parts = [f"{escaped(row['api'] or 'unknown')}{version}"]
    if row["correlation_id"] is not None:
        parts.append(f"id {row['correlation_id']}")
    if turn.is_request:
        parts.append(f"{row['request_bytes']:,} bytes")
        parts += [topic_names(row["topics"])] if row["topics"] else []
        note = NOTES.get(row["status"])
    else:
        parts.append(f"{row['response_bytes']:,} bytes")
        parts += [] if row["latency_ms"] is None else [latency_text(row["latency_ms"])]
        parts += [error_names(row["errors"])] if row["errors"] else []
        note = "orphan" if row["status"] == "orphan" else None
    return [*parts, note] if note else parts
