"""
The observations that rules check, with the state of their connection and capture.

An observation is an exchange, a record batch or the end of a connection.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar
from uuid import UUID

from construct import Container

from conform.evidence.bounded_memory import Remembers
from conform.evidence.decode_mismatch import Misfit, misfit
from conform.evidence.non_canonical_values import has_odd_values
from dissector.engine.exchanges.exchange import Exchange
from dissector.protocol.carried import Carried, Read, carried, read_field
from dissector.protocol.headers import SASL_HANDSHAKE
from dissector.protocol.messages import Message
from dissector.protocol.records import Batch
from dissector.protocol.spans import Span, spans

Value = TypeVar("Value")

MOST_ODD = 100
"""Limit per connection of the unanswered requests, orphan responses and cut exchanges kept."""


class _once(Generic[Value]):  # noqa: N801  (it is used as a decorator)
    """A property that is computed once, without the lock of `functools.cached_property`."""

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__
        self._name = compute.__name__

    def __get__(self, it: Any, owner: Any = None) -> Value:
        value = it.__dict__[self._name] = self._compute(it)
        return value


class World(Remembers):
    """
    State of the capture as a whole.

    Attributes:
        partial: Why messages may be missing from the capture; empty: as far as can be seen, every
            connection is complete. A connection without any captured packet leaves no trace:
            comparisons between connections must allow for that.
        is_disordered: Whether a response was captured while no request waited for it: its request
            may have been sent, and is unknown.
    """

    def __init__(self) -> None:
        super().__init__()
        self.partial = ""
        self.is_disordered = False


class Peer:
    """
    One side of a connection.

    Attributes:
        address: `address:port`.
        software: Name and version, where ApiVersions reveals them; else empty.
    """

    __slots__ = ("address", "software")

    def __init__(self, address: str) -> None:
        self.address = address
        self.software = ""


class Talk(Remembers):
    """
    State of one connection.

    Attributes:
        number: Number of the connection in the capture.
        client: The side that sends requests.
        broker: The side that sends responses.
        partial: Why some messages of the connection are unknown, so far; empty: all are known.
        torn: The same, for messages since the capture began.
        skipped: Captured bytes of client and broker that are not Kafka frames; zeros where any
            part of the connection was not captured.
        ended: `fin`, `rst`, `reused`, or empty where the capture ended first.
        newest: The answered request that was sent last: its offset in its stream, and its
            correlation id; -1 before the first.
        unanswered: The first exchanges without a response, in the order in which they ended.
        orphans: The first responses without requests.
        cut: The first exchanges with an incomplete frame.
        has_tokens: Whether raw SASL tokens may be sent, which only their order distinguishes.
        repeats: Whether the client uses a correlation id for several requests.
        is_disordered: Whether a response was captured while no request waited for it, or a request
            that expects a response got none.
    """

    def __init__(self, number: int, client: str, broker: str) -> None:
        super().__init__()
        self.number = number
        self.client = Peer(client)
        self.broker = Peer(broker)
        self.partial = self.torn = ""
        self.skipped = (0, 0)
        self.ended = ""
        self.newest: tuple[int, int | None] = (-1, None)
        self.unanswered: list[Turn] = []
        self.orphans: list[Turn] = []
        self.cut: list[Turn] = []
        self.has_tokens = self.repeats = self.is_disordered = False

    def doubt(self, turn: Turn) -> str:
        """
        Return why an exchange may not be real; empty: request and response belong together.

        Repeated correlation ids are correlated by order alone. Bytes behind a gap may look like a
        frame without being one, and are then taken for a late response to an earlier request.
        """
        exchange = turn.exchange
        if self.partial and exchange.status != "answered":
            return self.partial
        if exchange.status == "orphan" and len(self.orphans) >= MOST_ODD:
            return "no request waits for the response, as for many before"
        if self.torn and turn.sent_at < self.newest[0]:
            return self.torn
        if self.repeats and (self.partial or self.is_disordered):
            return "correlation ids repeat, and packets are missing or out of order"
        return ""

    def note(self, turn: Turn) -> None:
        """Update the state of the connection with the outcome of an exchange."""
        exchange = turn.exchange
        if not self.partial and len(self.cut) < MOST_ODD and turn.cut is not None:
            self.cut.append(turn.kept())
        if exchange.is_token or (turn.api_key == SASL_HANDSHAKE and turn.version == 0):
            self.has_tokens = True
        if exchange.status == "answered":
            self.newest = max(self.newest, (turn.sent_at, exchange.correlation_id), key=_first)
            return
        self.is_disordered |= exchange.status in ("unanswered", "orphan")
        turn.world.is_disordered |= exchange.status == "orphan"
        odd = {"unanswered": self.unanswered, "orphan": self.orphans}.get(exchange.status)
        if odd is not None and not self.partial and len(odd) < MOST_ODD:
            odd.append(turn.kept())


def _first(pair: tuple[int, int | None]) -> int:
    return pair[0]


class Closing:
    """The observation at the end of a connection, or of the capture."""

    def __init__(self, talk: Talk, world: World) -> None:
        self.talk = talk
        self.world = world

    @property
    def whole(self) -> bool:
        """Whether nothing was lost on this connection."""
        return not self.talk.partial


class Turn(Closing):
    """
    An exchange with the state of its connection and capture.

    Attributes:
        exchange: The exchange.
        talk: State of its connection.
        world: State of the capture.
        read_records: Reads the `records` fields of its messages, in their order.
    """

    def __init__(
        self, exchange: Exchange, talk: Talk, world: World, read_records: Read = read_field
    ) -> None:
        super().__init__(talk, world)
        self.exchange = exchange
        self.read_records = read_records

    @_once
    def request(self) -> Message | None:
        """The request; None where it is not in the capture."""
        return self.exchange.request

    @_once
    def response(self) -> Message | None:
        """The response; None where there is none."""
        return self.exchange.response

    @_once
    def asked(self) -> Container | None:
        """The body of the request; None where it is missing or unreliable."""
        return None if self.request is None or self._request_lacks else self.request.body

    @_once
    def told(self) -> Container | None:
        """The body of the response; None where it is missing or unreliable."""
        return None if self.response is None or self._response_lacks else self.response.body

    @_once
    def carried(self) -> list[tuple[Message, Carried]]:
        """The non-null `records` fields of both messages, with their contents."""
        return [
            (each, field)
            for each in self.exchange.messages
            if not each.is_assumed
            for field in carried(each, self.read_records)
        ]

    @_once
    def api_key(self) -> int | None:
        """The key of the API; None for orphan responses and raw SASL tokens."""
        return self.exchange.api_key

    @_once
    def version(self) -> int | None:
        """The version of the request."""
        return self.exchange.api_version

    @_once
    def declared(self) -> list[Message]:
        """The messages with a known API and version."""
        messages = self.exchange.messages
        return [each for each in messages if each.schema is not None and not each.is_assumed]

    @_once
    def misfits(self) -> list[tuple[Message, Misfit]]:
        """The complete messages that do not match their schema, and why."""
        whole = [each for each in self.declared if each.size == len(each.frame)]
        found = [(message, misfit(message)) for message in whole]
        return [(message, why) for message, why in found if why is not None]

    @property
    def cut(self) -> Message | None:
        """The first message whose end was not captured; None where all are complete."""
        messages = self.exchange.messages
        return next((each for each in messages if each.size > len(each.frame)), None)

    def kept(self) -> Turn:
        """Return a copy that owns its bytes, so that it can outlive its window."""
        return Turn(self.exchange.kept(), self.talk, self.world)

    @_once
    def sent_at(self) -> int:
        """Offset of the request in its stream; -1 where it is not in the capture."""
        return -1 if self.request is None else self.exchange.place_of(self.request)[0]

    def lacks(self, *, request: bool = True, response: bool = True) -> str:
        """Return why the bodies of request and response can't be examined; empty: they can."""
        return (request and self._request_lacks) or (response and self._response_lacks) or ""

    @_once
    def _request_lacks(self) -> str:
        return _lack("request", self.request)

    @_once
    def _response_lacks(self) -> str:
        return _lack("response", self.response)

    def topic_name(self, name: str | None, topic_id: UUID | None) -> str:
        """Return the name of a topic that a message gives by name or id; the id if unknown."""
        if name is not None or topic_id is None:
            return name or ""
        return self.exchange.known_topic(topic_id) or str(topic_id)


def lost_bytes(message: Message) -> str:
    """Return why bytes of a message are missing."""
    if message.broken_off:
        return f"the connection ended within the {message.kind}"
    return f"some bytes of the {message.kind} were not captured"


def _lack(kind: str, message: Message | None) -> str:
    """Return why the body of a message can't be examined; empty: it can."""
    if message is None:
        return f"the {kind} is not in the capture"
    if message.size > len(message.frame):
        return lost_bytes(message)
    if message.body is None or message.schema is None:
        return f"the {kind} can't be read"
    if message.is_assumed:
        return f"the {kind} is of a version that is not known"
    if message.body_end != message.size:
        return f"the {kind} has bytes left over"
    if has_odd_values(message.schema, message.api_version or 0)(message.body):
        return f"the {kind} has values that none may have"
    return ""


class BatchTurn(Turn):
    """
    A record batch, or a message set, with the exchange that carries it.

    Attributes:
        message: The Produce request or the Fetch or ShareFetch response.
        field: The `records` field that holds the batch: topic, partition, bytes.
        index: Index of the batch in the field.
        batch: The batch, with its records and problems; positions are relative to the field.
    """

    def __init__(self, turn: Turn, message: Message, field: Carried, index: int) -> None:
        self.__dict__.update(turn.__dict__)
        self.message = message
        self.field = field
        self.index = index
        self.batch: Batch = field.batches[index]

    @property
    def topic(self) -> str:
        """The name of the topic, or its id as text where the capture does not contain the name."""
        return self.topic_name(self.field.topic, self.field.topic_id)

    @property
    def partition(self) -> int:
        """The number of the partition."""
        return self.field.partition

    @property
    def path(self) -> str:
        """The path of the batch: `topic_data[0].partition_data[1].records[2]`."""
        return f"{self.field.path}[{self.index}]"

    def span(self, start: int = 0, end: int | None = None) -> tuple[int, int]:
        """Return the byte range in the frame of part of the batch; by default of all of it."""
        found = span_of(self.message, self.field.path)
        content = found[1] - len(self.field.data) if found else 0
        first = content + self.batch.position
        if end is None:
            after = self.field.batches[self.index + 1 : self.index + 2]
            stop = after[0].position if after else len(self.field.data)
            return first + start, content + stop
        return first + start, first + end


def span_of(message: Message, path: str) -> tuple[int, int] | None:
    """Return the byte range in the frame of a body field, or of the nearest enclosing field."""
    if message.schema is None or message.api_version is None:
        return None
    at = spans(message.schema, message.api_version, message.frame, message.body_start)
    while (inner := _child_on_way(at, path)) is not None:
        at = inner
    return (at.start, at.end) if at.path else None


def _child_on_way(span: Span, path: str) -> Span | None:
    for child in span.children:
        if path == child.path or path.startswith((f"{child.path}.", f"{child.path}[")):
            return child
    return None
