"""The reporter with which a rule records its results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from conform.evidence.observation import Closing, Turn, span_of
from conform.registry.rank import Severity
from conform.registry.rule import Rule, Side
from conform.registry.verdict import PARTICULARS, Finding, Verdict, finding_key
from dissector.protocol.embedded.masking import secret_ranges
from dissector.protocol.embedded.sasl_tokens import MASK

if TYPE_CHECKING:
    from dissector.protocol.messages import Message

_HEAD_BYTES = 16
"""Length of the prefix by which a frame is found again; it contains the correlation id."""


class Seen:
    """
    The current observation, shared by all reporters.

    Attributes:
        turn: An exchange, a batch or the end of a connection.
    """

    __slots__ = ("turn",)

    turn: Closing


class Say:
    """Records the results of one rule for the current observation."""

    __slots__ = ("_rule", "_seen", "_tally", "_verdict")

    def __init__(self, rule: Rule, verdict: Verdict, seen: Seen) -> None:
        self._rule = rule
        self._verdict = verdict
        self._seen = seen
        self._tally = verdict.tallies[rule.id]

    def judged(self) -> None:
        """Count one case that could be judged, whatever the result."""
        self._tally.judged += 1

    def unjudged(self, why: str, cases: int = 1) -> None:
        """Count cases that could not be judged."""
        self._tally.unjudged[why] += cases

    def failed(self, error: Exception) -> None:
        """Record that the rule itself raised an exception."""
        self._verdict.fault(self._rule.id, error, where_text(self._seen.turn))

    def broken(
        self,
        side: Side,
        found: str,
        *,
        message: Message | None = None,
        path: str = "",
        span: tuple[int, int] | None = None,
        severity: Severity | None = None,
        of: Turn | None = None,
    ) -> None:
        """
        Record a violation of the rule; only `judged` counts the case as judged.

        Args:
            side: The side that broke it.
            found: What was found, in a line. Findings are grouped by this text without its numbers
                and quoted words: quote whatever varies.
            message: The message that shows it; by default that of the side.
            path: The field of its body.
            span: The byte range in its frame; by default that of the field.
            severity: Where it differs from the rule's.
            of: A retained exchange, where the rule examines the end of its connection.
        """
        turn = of or self._seen.turn
        talk = turn.talk
        exchange = turn.exchange if isinstance(turn, Turn) else None
        peer = talk.client if side is Side.CLIENT else talk.broker
        api = (exchange.api or "") if exchange else ""
        self._tally.broken += 1
        version = exchange.api_version if exchange else None
        key = finding_key(self._rule, side, peer.software, api, path, found)
        kind = self._verdict.kind(key, version)
        if kind is None:
            return
        if message is None and isinstance(turn, Turn):
            message = turn.request if side is Side.CLIENT else turn.response
        if span is None and path and message is not None:
            span = span_of(message, path)
        if span is not None and message is not None and _is_secret(message, span, turn):
            found = PARTICULARS.sub(MASK, found)
        packet = None
        if exchange is not None and message is not None:
            asked = message.kind == "request"
            packet = exchange.request_packet if asked else exchange.response_packet
        kind.findings.append(
            Finding(
                self._rule,
                severity or self._rule.severity,
                side,
                found,
                peer.software,
                talk.number,
                talk.client.address,
                talk.broker.address,
                packet,
                exchange.correlation_id if exchange else None,
                api,
                version,
                message.kind if message else "",
                path,
                span,
                exchange.capture if exchange else "",
                frame=(message.frame[:_HEAD_BYTES], message.size) if message else None,
                client_id=(exchange.client_id or "") if exchange else "",
            )
        )


def where_text(turn: Closing) -> str:
    """Return the connection, and the exchange on it, of an observation."""
    parts = [f"connection {turn.talk.number}"]
    if isinstance(turn, Turn):
        exchange = turn.exchange
        packets = (exchange.request_packet, exchange.response_packet)
        shown = [str(packet) for packet in packets if packet is not None]
        version = "" if exchange.api_version is None else f" v{exchange.api_version}"
        parts = [f"{exchange.api or 'unknown'}{version}", *parts, f"packet {' and '.join(shown)}"]
    return ", ".join(parts)


def _is_secret(message: Message, span: tuple[int, int], turn: Closing) -> bool:
    """Return whether a byte range of a message overlaps a secret."""
    request = turn.request if isinstance(turn, Turn) and message.kind == "response" else None
    start, end = span
    return any(first < end and start < last for first, last in secret_ranges(message, request))
