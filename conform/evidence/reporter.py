"""The reporter, with which a rule records its results."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import lru_cache
from heapq import nsmallest
from typing import TYPE_CHECKING

from conform.evidence.observation import ConnectionObservation, Observation
from conform.registry.field_range import span_of
from conform.registry.rank import Severity
from conform.registry.rule import Rule, Side
from conform.registry.verdict import Finding, Verdict, finding_key
from dissector.engine.exchanges.exchange import Exchange
from dissector.protocol.embedded.masking import secret_ranges
from dissector.protocol.embedded.sasl_tokens import MASK
from dissector.protocol.embedded.secrecy.blanked_ranges import overlaps_secret
from dissector.protocol.embedded.secrecy.credentials import mask_texts
from dissector.protocol.login_secrets import NOTHING_KNOWN
from dissector.view.text.escape import VARIABLE_PARTS

if TYPE_CHECKING:
    from dissector.protocol.messages import Message

_FRAME_PREFIX_BYTES = 16
"""Length of the prefix that identifies a frame in its file; it contains the correlation id."""


_MAX_NUMBERS = 20


def numbers_text(numbers: Collection[int]) -> str:
    """Return the lowest of some numbers as a list, and the number of others."""
    more = len(numbers) - _MAX_NUMBERS
    return f"{nsmallest(_MAX_NUMBERS, numbers)}" + f" and {more:,} more" * (more > 0)


class CurrentObservation:
    """
    The current observation, shared by all reporters.

    Attributes:
        observation: An exchange, a batch or the end of a connection.
        passed: The bits of the screens that the exchange passed, whatever is at rest.
    """

    __slots__ = ("_connections", "_passes", "observation", "passed")

    observation: ConnectionObservation

    def __init__(self, passes: Callable[[Exchange], bool] | None = None) -> None:
        """Begin; `passes` chooses the exchanges whose violations are reported, None all."""
        self._passes = passes
        self._connections = set[int]()
        self.passed = 0

    def note(self, exchange: Exchange) -> None:
        """Note the connection of each exchange, if the exchange is chosen."""
        if self._passes is not None and self._passes(exchange):
            self._connections.add(exchange.connection)

    def is_chosen(self, observation: ConnectionObservation) -> bool:
        """Return whether its violations are reported: of a connection if an exchange of it is."""
        if self._passes is None:
            return True
        if isinstance(observation, Observation):
            return self._passes(observation.exchange)
        return observation.connection.number in self._connections


class Reporter:
    """Records the results of one rule for the current observation."""

    __slots__ = ("_bit", "_current", "_rule", "_tally", "_verdict")

    def __init__(
        self, rule: Rule, verdict: Verdict, current: CurrentObservation, bit: int = 0
    ) -> None:
        self._rule = rule
        self._verdict = verdict
        self._current = current
        self._tally = verdict.tallies[rule.id]
        self._bit = bit

    @property
    def is_screened(self) -> bool:
        """Whether the exchange passed the screen, and only the state of the rule is not at rest."""
        return bool(self._current.passed & self._bit)

    def count_judged(self) -> None:
        """Count a case that could be judged, whatever the result."""
        self._tally.judged += 1

    def count_unjudged(self, reason: str, cases: int = 1) -> None:
        """Count cases that could not be judged."""
        self._tally.unjudged[reason] += cases

    def record_exception(self, error: Exception) -> None:
        """Record that the rule itself raised an exception."""
        self._verdict.fault(self._rule.id, error, observation_text(self._current.observation))

    def report_violation(
        self,
        side: Side,
        found: str,
        *,
        message: Message | None = None,
        path: str = "",
        span: tuple[int, int] | Callable[[], tuple[int, int]] | None = None,
        severity: Severity | None = None,
        retained: Observation | None = None,
    ) -> None:
        """
        Record a violation of the rule; it does not count a judged case (`count_judged` does).

        Args:
            side: The side that broke it.
            found: The finding, in one line. Findings are grouped by this text without its numbers
                and quoted words, so quote whatever varies.
            message: The message with the violation; by default the last one of the side.
            path: The field in its body.
            span: The byte range in its frame, or a function that returns it, which is called if the
                finding is retained in full; by default the bytes of the field.
            severity: The severity, if different from the rule's.
            retained: The exchange with the violation, if the rule examines the end of a
                connection.
        """
        observation = retained or self._current.observation
        if not self._current.is_chosen(observation):
            return
        connection = observation.connection
        exchange = observation.exchange if isinstance(observation, Observation) else None
        peer = connection.client if side is Side.CLIENT else connection.broker
        api = (exchange.api or "") if exchange else ""
        self._tally.broken += 1
        version = exchange.api_version if exchange else None
        known = exchange.known_secrets if exchange else NOTHING_KNOWN
        software = peer.software
        software = mask_texts(software, known) if known is not NOTHING_KNOWN else _masked(software)
        key = finding_key(self._rule, side, software, api, path, found)
        kind = self._verdict.kind(key, version)
        if kind is None:
            return
        if message is None and isinstance(observation, Observation):
            message = observation.request if side is Side.CLIENT else observation.response
        if callable(span):
            span = span()
        elif span is None and path and message is not None:
            span = span_of(message, path)
        if span is not None and message is not None and _is_secret(message, span, observation):
            found = VARIABLE_PARTS.sub(MASK, found)
        found = mask_texts(found, known)
        packet = None
        if exchange is not None and message is not None:
            is_request = message.kind == "request"
            packet = exchange.request_packet if is_request else exchange.response_packet
        kind.findings.append(
            Finding(
                self._rule,
                severity or self._rule.severity,
                side,
                found,
                software,
                connection.number,
                connection.client.address,
                connection.broker.address,
                packet,
                exchange.correlation_id if exchange else None,
                api,
                version,
                message.kind if message else "",
                path,
                span,
                exchange.capture if exchange else "",
                frame=(message.frame[:_FRAME_PREFIX_BYTES], message.size) if message else None,
                client_id=mask_texts(exchange.client_id or "", known) if exchange else "",
                origin=connection.client.origin or "",
            )
        )


@lru_cache(256)
def _masked(software: str) -> str:
    """Return the name of a software, which many findings share, without credentials."""
    found: str = mask_texts(software)
    return found


def observation_text(observation: ConnectionObservation) -> str:
    """Return the connection, and the exchange on it, of an observation."""
    parts = [f"connection {observation.connection.number}"]
    if isinstance(observation, Observation):
        exchange = observation.exchange
        packets = (exchange.request_packet, exchange.response_packet)
        shown = [str(packet) for packet in packets if packet is not None]
        version = "" if exchange.api_version is None else f" v{exchange.api_version}"
        parts = [f"{exchange.api or 'unknown'}{version}", *parts, f"packet {' and '.join(shown)}"]
    return ", ".join(parts)


def _is_secret(message: Message, span: tuple[int, int], observation: ConnectionObservation) -> bool:
    """Return whether a byte range of a message overlaps a secret."""
    request = (
        observation.request
        if isinstance(observation, Observation) and message.kind == "response"
        else None
    )
    return overlaps_secret(secret_ranges(message, request), *span)
