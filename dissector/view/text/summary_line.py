"""One line for each message: what `dissect` prints, in the manner of tshark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dissector.protocol.messages import Message
from dissector.view.text.escape import escaped

_TOPICS = 3
"""So many topics are named; of the others only the number is told."""


@dataclass(frozen=True, slots=True)
class Seen:
    """
    A message and where it was seen.

    Attributes:
        message: The message.
        packet: Number of the packet that completed it, from 1.
        time_ns: When that was.
        connection: Number of the connection.
        source: `address:port` of the sender.
        target: Of the receiver.
        api: Name of the API where the message itself has none, as raw SASL tokens.
        topics: The topics it names.
        errors: The names of its errors.
        latency_ms: Of a response: since its request.
        note: Anything else, such as `no response`.
        problems: How many problems it has.
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


def message_line(seen: Seen, begin_ns: int) -> str:
    """Return the line of a message; `begin_ns` is the time that counts as zero."""
    seconds = (seen.time_ns - begin_ns) / 1e9
    ends = f"{seen.source:>21} -> {seen.target:<21}"
    start = f"{seen.packet:>6} {seconds:>12.6f} {f'#{seen.connection}':>4} {ends}"
    return "  ".join((f"{start} {_title(seen):<32}", *_details(seen))).rstrip()


def _title(seen: Seen) -> str:
    message = seen.message
    name = message.api or seen.api or "unknown"
    version = "" if message.shown_version is None else f" v{message.shown_version}"
    return f"{name}{version} {message.kind}"


def _details(seen: Seen) -> list[str]:
    message = seen.message
    details = [] if message.correlation_id is None else [f"id {message.correlation_id}"]
    if message.client_id is not None:
        details.append(escaped(message.client_id))
    details += [_listed(seen.topics)] if seen.topics else []
    details += [", ".join(map(escaped, seen.errors))] if seen.errors else []
    details += [] if seen.latency_ms is None else [f"{seen.latency_ms:.3f} ms"]
    details += [seen.note] if seen.note else []
    if seen.problems:
        details.append(f"[{seen.problems} problem{'s' * (seen.problems != 1)}]")
    return details


def _listed(topics: Sequence[str]) -> str:
    named = ", ".join(map(escaped, topics[:_TOPICS]))
    more = len(topics) - _TOPICS
    return f"{named} and {more} more" if more > 0 else named
