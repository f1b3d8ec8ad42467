"""
Observations, the input of rules, with the state of their connection and capture.

An observation is an exchange, a record batch or the end of a connection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import UUID

from construct import Container

from conform.evidence.bounded_memory import NO_RESTS, RuleStates
from conform.evidence.decode_mismatch import DecodeMismatch, decode_mismatch_of
from conform.evidence.unreadable import unreadable_reason
from conform.registry.exchange_row import ExchangeRow
from conform.registry.fetch_content import FetchContent
from conform.registry.partition_results import PartitionResult
from conform.registry.single_values import NO_REPLICA, NO_VALUES, SingleValues
from dissector.engine.exchanges.exchange import Exchange
from dissector.protocol.headers import SASL_HANDSHAKE
from dissector.protocol.messages import Message
from dissector.protocol.records_fields import ReadRecords, RecordsField, read_field, records_fields

if TYPE_CHECKING:
    from dissector.query.contents.decoded_values import RecordValues

Value = TypeVar("Value")


MAX_RETAINED = 100
"""Limit, per connection, of each list of retained exchanges."""


class _cached(Generic[Value]):  # noqa: N801  (it is used as a decorator)
    """A property that is computed once, without the lock of `functools.cached_property`."""

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__
        self._name = compute.__name__

    def __get__(self, instance: Any, owner: Any = None) -> Value:
        value = instance.__dict__[self._name] = self._compute(instance)
        return value


class CaptureState(RuleStates):
    """
    State of the capture as a whole.

    Attributes:
        incomplete_reason: Why messages may be missing from the capture; empty: every captured
            connection is complete. Connections without a captured packet remain unknown, which
            comparisons between connections must allow for.
        is_disordered: Whether a response without a request in flight was captured: its request may
            have been sent, but is unknown.
        values: Decodes keys and values; None without schemas.
    """

    def __init__(
        self, exhausted: dict[type, str] | None = None, rests: Mapping[type, int] = NO_RESTS
    ) -> None:
        super().__init__(exhausted, rests)
        self.incomplete_reason = ""
        self.is_disordered = False
        self.values: RecordValues | None = None


class Peer:
    """
    One side of a connection.

    Attributes:
        address: `address:port`.
        software: Name and version from ApiVersions; empty if unknown.
        origin: The client before a proxy, as its header names it; None without one.
    """

    __slots__ = ("address", "origin", "software")

    def __init__(self, address: str) -> None:
        self.address = address
        self.software = ""
        self.origin: str | None = None


class ConnectionState(RuleStates):
    """
    State of one connection.

    Attributes:
        number: Number of the connection in the capture.
        client: The side that sends requests.
        broker: The side that sends responses.
        incomplete_reason: Why messages of the connection are missing from the capture so far;
            empty: none is.
        gap_reason: The same, without messages sent before the capture began.
        skipped_bytes: Number of captured bytes of client and broker that are not Kafka frames,
            without headers of proxies; zeros if part of the connection was not captured.
        skips_before_frames: Whether all of these come before the first frame of their side.
        ended: `fin`, `rst`, `reused`, or empty if the capture ended first.
        last_answered: The last sent of the requests with a response: its offset in the stream, and
            its correlation id; -1 before the first.
        last_response_ns: Time of the last response before the current exchange; 0 without one.
        unanswered: The first exchanges without a response, in the order of their ends.
        orphans: The first responses without requests.
        truncated: The first exchanges with an incomplete frame.
        may_have_raw_tokens: Whether the connection may contain raw SASL tokens, which only their
            order distinguishes.
        has_login: Whether it had a SASL exchange or token, up to the end of the current window.
        repeats_correlation_ids: Whether the client uses a correlation id for several requests.
        is_disordered: Whether there was a response without a request in flight, or a request that
            expects a response and got none.
    """

    def __init__(
        self,
        number: int,
        client: str,
        broker: str,
        exhausted: dict[type, str] | None = None,
        rests: Mapping[type, int] = NO_RESTS,
    ) -> None:
        super().__init__(exhausted, rests)
        self.number = number
        self.client = Peer(client)
        self.broker = Peer(broker)
        self.incomplete_reason = self.gap_reason = ""
        self.skipped_bytes = (0, 0)
        self.skips_before_frames = False
        self.ended = ""
        self.last_answered: tuple[int, int | None] = (-1, None)
        self.last_response_ns = 0
        self.unanswered: list[Observation] = []
        self.orphans: list[Observation] = []
        self.truncated: list[Observation] = []
        self.has_login = False
        self.may_have_raw_tokens = self.repeats_correlation_ids = self.is_disordered = False

    def uncertain_pairing_reason(self, observation: Observation) -> str:
        """
        Return why request and response may not belong together; empty: they do.

        Requests with equal correlation ids are paired with responses by order alone. Bytes after a
        gap may look like a frame, and then count as a late response to an earlier request.
        """
        exchange = observation.exchange
        if self.incomplete_reason and exchange.status != "answered":
            return self.incomplete_reason
        if exchange.status == "orphan" and len(self.orphans) >= MAX_RETAINED:
            return "the connection has too many responses without requests"
        if self.gap_reason and observation.request_offset < self.last_answered[0]:
            return self.gap_reason
        if self.repeats_correlation_ids and (self.incomplete_reason or self.is_disordered):
            return "correlation ids repeat, and packets are missing or out of order"
        return ""

    def record(self, observation: Observation) -> None:
        """Update the state of the connection with the outcome of an exchange."""
        exchange, row = observation.exchange, observation.row
        self.last_response_ns = max(self.last_response_ns, row.response_ns or 0)
        if (
            not observation.is_canonical
            and not self.incomplete_reason
            and len(self.truncated) < MAX_RETAINED
            and observation.truncated_message is not None
        ):
            self.truncated.append(observation.detach())
        if exchange.is_token or (row.api_key == SASL_HANDSHAKE and row.version == 0):
            self.may_have_raw_tokens = True
        if exchange.status == "answered":
            if row.request_offset > self.last_answered[0]:
                self.last_answered = row.request_offset, row.correlation_id
            return
        self.is_disordered |= exchange.status in ("unanswered", "orphan")
        observation.capture_state.is_disordered |= exchange.status == "orphan"
        retained = {"unanswered": self.unanswered, "orphan": self.orphans}.get(exchange.status)
        if retained is not None and not self.incomplete_reason and len(retained) < MAX_RETAINED:
            retained.append(observation.detach())


class ConnectionObservation:
    """The end of a connection, or of the capture; also the base of all observations."""

    def __init__(self, connection: ConnectionState, capture_state: CaptureState) -> None:
        self.connection = connection
        self.capture_state = capture_state

    @property
    def is_complete(self) -> bool:
        """Whether the capture contains all messages of the connection so far."""
        return not self.connection.incomplete_reason


class Observation(ConnectionObservation):
    """
    An exchange with the state of its connection and capture.

    Attributes:
        exchange: The exchange.
        row: Its columns.
        connection: State of its connection.
        capture_state: State of the capture.
        read_records: Decodes the `records` fields of its messages, which must be read in order.
        is_canonical: Whether it is known that each of its messages is whole and canonical; False
            says nothing.
        results: The partitions of a Produce or Fetch exchange, as columns show them; None: only its
            decoded messages do.
        fetch: What a Fetch says of its session, likewise.
        single: What its messages say once, if they are canonical.
        api_key: The key of the API; None for orphan responses and raw SASL tokens.
        version: The version of the request.
        request_offset: Offset of the request in its stream; -1 if it was not captured.
    """

    def __init__(
        self,
        exchange: Exchange,
        row: ExchangeRow,
        connection: ConnectionState,
        capture_state: CaptureState,
        read_records: ReadRecords = read_field,
        is_canonical: bool = False,
        results: list[PartitionResult] | None = None,
        fetch: FetchContent | None = None,
        single: SingleValues = NO_VALUES,
    ) -> None:
        super().__init__(connection, capture_state)
        self.exchange = exchange
        self.row = row
        self.api_key, self.version = row.api_key, row.version
        self.request_offset = row.request_offset
        self.read_records = read_records
        self.is_canonical = is_canonical
        self.results = results
        self.fetch = fetch
        self._single = single

    @_cached
    def request(self) -> Message | None:
        """The request; None if it was not captured."""
        return self.exchange.request

    @_cached
    def response(self) -> Message | None:
        """The response; None without one."""
        return self.exchange.response

    @_cached
    def request_body(self) -> Container | None:
        """The body of the request; None if it is missing or unreliable."""
        message = self.request
        return None if message is None or self._request_unreadable_reason else message.body

    @_cached
    def response_body(self) -> Container | None:
        """The body of the response; None if it is missing or unreliable."""
        message = self.response
        return None if message is None or self._response_unreadable_reason else message.body

    @property
    def throttle_ms(self) -> int:
        """The throttle time in the response; 0 without one."""
        if self.is_canonical:
            return self._single.throttle_ms  # it needs not be decoded
        body = self.response_body
        found: int = 0 if body is None else body.get("throttle_time_ms") or 0
        return found

    @property
    def is_refused(self) -> bool:
        """Whether the response has the error UNSUPPORTED_VERSION."""
        if self.is_canonical:
            return self._single.is_refused
        return "UNSUPPORTED_VERSION" in self.exchange.errors

    @property
    def replica_id(self) -> int:
        """The replica id in a Fetch request; NO_REPLICA of a consumer, or without one."""
        if self.is_canonical:
            return self._single.replica_id
        state = getattr(self.request_body, "replica_state", None)
        found: int = (
            getattr(self.request_body, "replica_id", NO_REPLICA)
            if state is None
            else state.replica_id
        )
        return found

    @_cached
    def record_fields(self) -> list[tuple[Message, RecordsField]]:
        """The `records` fields of both messages that are not null, with their batches."""
        return [
            (each, field)
            for each in self.exchange.messages
            if not each.is_assumed
            for field in records_fields(each, self.read_records)
        ]

    @_cached
    def decodable_messages(self) -> list[Message]:
        """The messages with a known API and version."""
        messages = self.exchange.messages
        return [each for each in messages if each.schema is not None and not each.is_assumed]

    @_cached
    def decode_mismatches(self) -> list[tuple[Message, DecodeMismatch]]:
        """The complete messages that do not match their schema, with the mismatch."""
        if self.is_canonical:
            return []
        complete = [each for each in self.decodable_messages if each.size == len(each.frame)]
        found = [(message, decode_mismatch_of(message)) for message in complete]
        return [(message, mismatch) for message, mismatch in found if mismatch is not None]

    @property
    def truncated_message(self) -> Message | None:
        """The first message without a captured end; None if both are complete."""
        messages = () if self.is_canonical else self.exchange.messages
        return next((each for each in messages if each.size > len(each.frame)), None)

    def detach(self) -> Observation:
        """Return a copy with its own bytes, which outlives the window."""
        return Observation(self.exchange.kept(), self.row, self.connection, self.capture_state)

    def unreadable_reason(self, *, request: bool = True, response: bool = True) -> str:
        """Return why the bodies of request and response are not available; empty: they are."""
        row = self.row
        if self.is_canonical and None not in (row.request_packet, row.response_packet):
            return ""  # they need not be decoded
        return (
            (request and self._request_unreadable_reason)
            or (response and self._response_unreadable_reason)
            or ""
        )

    @property
    def missing_records_reason(self) -> str:
        """Return why the records of both messages are not available; empty: they are."""
        return "a request log has no records" if self.exchange.is_logged else ""

    @_cached
    def _request_unreadable_reason(self) -> str:
        if self.is_canonical and self.row.request_packet is not None:
            return ""  # it needs not be decoded
        return unreadable_reason("request", self.request, self.is_canonical)

    @_cached
    def _response_unreadable_reason(self) -> str:
        if self.is_canonical and self.row.response_packet is not None:
            return ""
        return unreadable_reason("response", self.response, self.is_canonical)

    def topic_name(self, name: str | None, topic_id: UUID | None) -> str:
        """Return the name of a topic, looked up by its id if needed; an unknown id as text."""
        if name is not None or topic_id is None:
            return name or ""
        return self.exchange.known_topic(topic_id) or str(topic_id)
