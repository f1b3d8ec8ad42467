"""Exchanges for trackers: reliable bodies, times, evidence."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple
from uuid import UUID

from dissector.engine.exchanges.exchange import Exchange
from dissector.protocol.error_codes import error_name
from dissector.protocol.messages import Message
from dissector.protocol.undeclared_nulls import has_undeclared_null
from timeline.events.event import Evidence
from timeline.events.waits import Wait


class Mark(NamedTuple):
    """
    The part of an exchange that states retain, without bytes of its window.

    Attributes:
        time_ns: As in `ObservedExchange`.
        end_ns: As in `ObservedExchange`.
        broker: `address:port` of the broker.
        evidence: The exchange.
    """

    time_ns: int
    end_ns: int
    broker: str
    evidence: Evidence


class ObservedExchange:
    """
    An exchange at the time of its end.

    Attributes:
        exchange: The exchange.
        api_key: Key of the API; None for orphans and SASL tokens.
        client: `address:port` of the client.
        broker: `address:port` of the broker.
        time_ns: Completion time of the request; for orphans, of the response.
        end_ns: Completion time of the response; without one, of the request.
        wait: The wait for an expected response that is not in the capture; None if there is one.
        ended: End of the connection before that response: `fin`, `rst` or `reused`.
        connection: Number of the connection, from 0.
        mismatch: How the protocols of client and server differ; empty if they do not.
    """

    mismatch = ""

    def __init__(
        self,
        exchange: Exchange,
        passes: Callable[[Exchange], bool],
        wait: Wait | None = None,
        connection: int | None = None,
    ) -> None:
        self.exchange = exchange
        self.connection: int = exchange.connection if connection is None else connection
        self.wait = wait
        self.ended = "" if wait is None else wait.ended
        self._passes = passes
        self.api_key = exchange.api_key
        self.client, self.broker = exchange.client, exchange.broker
        requested_ns, responded_ns = exchange.request_time_ns, exchange.response_time_ns
        self.time_ns: int = requested_ns if requested_ns is not None else responded_ns or 0
        self.end_ns: int = responded_ns if responded_ns is not None else self.time_ns

    @property
    def client_host(self) -> str:
        """Host of the client, without the port."""
        return self.client.rpartition(":")[0]

    @property
    def client_id(self) -> str:
        """Client id of the request; empty without one."""
        return self.exchange.client_id or ""

    @cached_property
    def request(self) -> Any:
        """Body of the request; None if missing or unreliable."""
        return reliable_body(self.exchange.request)

    @cached_property
    def response(self) -> Any:
        """Body of the response; None if missing or unreliable."""
        return reliable_body(self.exchange.response)

    @cached_property
    def error(self) -> str:
        """Name of the top-level error in the response; empty without one."""
        code = 0 if self.response is None else self.response.get("error_code") or 0
        return error_name(code) if code else ""

    @cached_property
    def evidence(self) -> Evidence:
        """The exchange as evidence."""
        exchange = self.exchange
        return Evidence(
            exchange.capture,
            self.connection,
            exchange.client,
            exchange.client_id,
            exchange.broker,
            exchange.request_packet,
            exchange.response_packet,
            exchange.correlation_id,
            exchange.api,
            self._passes(exchange),
        )

    @property
    def mark(self) -> Mark:
        """The part for retention in states."""
        return Mark(self.time_ns, self.end_ns, self.broker, self.evidence)

    def topic(self, body: Any, field: str = "name") -> str:
        """Return the topic name for a part of a body with a topic name or id."""
        name = body.get(field)
        if name:
            return str(name)
        topic_id: UUID | None = body.get("topic_id")
        return (topic_id and self.exchange.known_topic(topic_id)) or str(topic_id or "")


def reliable_body(message: Message | None) -> Any:
    """Return the body of a complete message that matches its declaration, else None."""
    if (
        message is None
        or message.body is None
        or message.size > len(message.frame)
        or message.is_assumed
        or message.faults
        or has_undeclared_null(message)
    ):
        return None
    return message.body


def is_follower(request: Any) -> bool:
    """Return whether a Fetch request is that of a broker, which replicates."""
    replica = request.get("replica_state")
    replica_id = request.get("replica_id", -1) if replica is None else replica.replica_id
    return replica_id is not None and replica_id >= 0
