"""One line for each message, as `dissect` prints it, in the style of tshark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from dissector.engine.tables.exchange_table import Ints
from dissector.protocol.embedded.secrecy.credentials import mask_texts
from dissector.protocol.messages import Message
from dissector.view.text.colors import colored, row_color
from dissector.view.text.escape import escaped
from dissector.view.text.time_style import TimeStyle

_MAX_TOPICS = 3
"""Topics that are named in a line; of the others only the number is shown."""

NOTES = {
    "no_response": "no response is due",
    "unanswered": "unanswered",
    "orphan": "orphan",
    "one_sided": "the other direction was not captured",
}
"""Remarks by status of an exchange."""


@dataclass(eq=False, slots=True)
class MessageSummary:
    """
    A message with its packet and endpoints.

    Attributes:
        message: The message.
        packet: Number of the packet that completed it, from 1.
        time_ns: Capture time of that packet.
        connection: Number of the connection.
        source: `address:port` of the sender.
        target: `address:port` of the receiver.
        api: Name of the API if the message itself has none, such as a raw SASL token.
        topics: Names of its topics.
        errors: Names of its errors.
        latency_ms: Time since the request of a response.
        note: A remark, such as `no response`.
        problems: Number of problems.
        show_secrets: Whether credentials in names are shown.
    """

    message: Message
    packet: int
    time_ns: int
    connection: int
    source: str
    target: str
    api: str | None = None
    topics: Sequence[str] = ()
    errors: Sequence[str] = ()
    latency_ms: float | None = None
    note: str = ""
    problems: int = 0
    show_secrets: bool = False


@dataclass(frozen=True, slots=True)
class LineStyle:
    """
    Style of the lines of messages.

    Attributes:
        begin_ns: Time of the first packet, the origin of relative times.
        times: Formats times in another way.
        has_color: Whether lines with errors are coloured.
        places: Returns the files of packets (from 0) of a capture of several files, with their
            numbers there; None for one file.
    """

    begin_ns: int
    times: TimeStyle | None = None
    has_color: bool = False
    places: Callable[[Ints], list[str]] | None = None

    def time(self, time_ns: int) -> str:
        """Return the time of a message."""
        if self.times is not None:
            return f"{self.times.text(time_ns):>12}"
        return f"{(time_ns - self.begin_ns) / 1e9:>12.6f}"

    def places_of(self, packets: Ints) -> Iterable[str]:
        """Return what follows the lines of packets (from 1): their files, if there are several."""
        if self.places is None:
            return repeat("", len(packets))
        return (f"  [{escaped(place)}]" for place in self.places(packets - 1))

    def line(self, text: str, errors: object, status: str, problems: object) -> str:
        """Return a line with its errors in colour; without names of errors, all of it."""
        row = {"errors": errors, "status": status, "problems": problems}
        color = row_color(row) if self.has_color else ""
        if not color:
            return text
        names = error_names(errors) if isinstance(errors, list | tuple) and errors else ""
        begin = text.rfind(names) if names else -1
        return colored(text, max(begin, 0), begin + len(names) if begin >= 0 else len(text), color)


def message_line(summary: MessageSummary, style: LineStyle) -> str:
    """Return the line of a message."""
    endpoints = f"{summary.source:>21} -> {summary.target:<21}"
    time = style.time(summary.time_ns)
    prefix = f"{summary.packet:>6} {time} {f'#{summary.connection}':>4} {endpoints}"
    line = "  ".join((f"{prefix} {_title(summary):<32}", *_details(summary))).rstrip()
    line += next(iter(style.places_of(np.array([summary.packet]))))
    return style.line(line, summary.errors, summary.note, summary.problems)


def _title(summary: MessageSummary) -> str:
    message = summary.message
    name = message.api or summary.api or "unknown"
    version = "" if message.shown_version is None else version_text(message.shown_version)
    return f"{name}{version} {message.kind}"


def version_text(version: int) -> str:
    """Return a version as it follows the name of its API."""
    return f" v{version}"


def _details(summary: MessageSummary) -> list[str]:
    message = summary.message
    details = [] if message.correlation_id is None else [f"id {message.correlation_id}"]
    client_id, topics = message.client_id, summary.topics
    if not summary.show_secrets:
        client_id, topics = mask_texts([client_id, list(topics)], message.known_secrets)
    if client_id is not None:
        details.append(escaped(client_id))
    details += [topic_names(topics)] if topics else []
    details += [error_names(summary.errors)] if summary.errors else []
    details += [] if summary.latency_ms is None else [latency_text(summary.latency_ms)]
    details += [summary.note] if summary.note else []
    if summary.problems:
        details.append(f"[{summary.problems} problem{'s' * (summary.problems != 1)}]")
    return details


def latency_text(latency_ms: float) -> str:
    """Return a latency with its unit."""
    return f"{latency_ms:.3f} ms"


def error_names(errors: Sequence[str]) -> str:
    """Return the names of errors."""
    return ", ".join(map(escaped, errors))


def topic_names(topics: Sequence[str]) -> str:
    """Return the names of topics, or of the first of many."""
    names = ", ".join(map(escaped, topics[:_MAX_TOPICS]))
    more = len(topics) - _MAX_TOPICS
    return f"{names} and {more} more" if more > 0 else names
