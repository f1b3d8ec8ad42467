"""One connection of a client, and the connection behind it to a broker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from cluster.client.endpoint import Endpoint, connect
from cluster.client.listener import UnfinishedFrames
from cluster.client.transport import format_address
from dissector.errors import ReplayError
from record.packets.packet_sink import BROKER, CLIENT, PacketSink
from record.relay.broker_responses import BrokerResponses
from record.relay.byte_stream import ByteStream
from record.relay.client_requests import ClientRequests
from record.relay.conversation import Conversation, ListenerOf
from record.relay.exchange_selection import ExchangeSelection
from record.relay.fault_injector import FaultInjector, LiveFaults
from record.relay.relay_settings import RelayCounts, RelaySettings
from record.relay.upstream_login import UpstreamLogin


class RelayedConnection:
    """
    Forwards between a client and a broker until both have ended.

    Args:
        number: Its number.
        settings: Security, timeouts and messages.
        sink: Takes the bytes to record.
        counts: Counts what is seen.
        listener_of: Returns the address at which clients reach a broker.
        faults: Faults to inject; None for none.
        unfinished: Counts the bytes of messages held by all connections.

    Attributes:
        client: The connection to the client.
        on_end: Called once both connections are gone.
    """

    def __init__(
        self,
        number: int,
        settings: RelaySettings,
        sink: PacketSink,
        counts: RelayCounts,
        listener_of: ListenerOf,
        faults: LiveFaults | None,
        unfinished: UnfinishedFrames,
    ) -> None:
        self.client = ByteStream(self, is_paused=True)
        self.on_end: Callable[[RelayedConnection], None] = lambda connection: None
        self._broker = ByteStream(self, is_paused=True)
        self._talk = Conversation(
            number, self.client, self._broker, sink, counts, listener_of, self._give_up
        )
        self._settings = settings
        self._unfinished = unfinished
        self._faults = None if faults is None else FaultInjector(faults, self._talk)
        self._requests = ClientRequests(self._talk, self._faults)
        self._responses = BrokerResponses(self._talk, self._faults)
        self._login: UpstreamLogin | None = None
        self._is_recorded = False
        self._early: list[bytes] = []
        self._ended: set[ByteStream] = set()
        self._late_ends: list[tuple[int, bool]] = []
        if self._faults is not None:
            self._faults.send_answers = self._responses.send_answers

    async def run(self, broker: Endpoint) -> None:
        """
        Connect to the broker once the client is there, log in, and begin to forward.

        Raises:
            ReplayError: The broker can't be reached, or refuses the login.
        """
        security, timeout_s = self._settings.security, self._settings.timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                await self.client.is_made.wait()
        except TimeoutError:  # no or no good TLS handshake: asyncio has closed it, or will
            self.on_end(self)
            return
        await connect(self._broker, broker, security.tls, timeout_s)
        addresses = self._addresses()
        if self.client.is_closed or addresses is None:
            self.abort()
            return
        self._talk.sink.open(self._talk.number, *addresses)
        if self._settings.chosen is not None:
            ends = format_address(*addresses[0][:2]), format_address(*addresses[1][:2])
            self._talk.selection = ExchangeSelection(
                self._settings.chosen, self._talk.sink, self._talk.number, ends
            )
        self._is_recorded = True
        self._broker.resume()
        if security.mechanism:
            login = UpstreamLogin(self._talk, str(broker), security, timeout_s, self._fail)
            login.at_request_end = self._requests.at_end
            self._login = login
            await login.run()
        self.client.resume()
        for each in self._early:
            self._requests.feed(each)
        self._early.clear()

    def abort(self) -> None:
        """Drop both connections."""
        self.client.abort()
        self._broker.abort()

    def drop(self) -> None:
        """Hold the messages that are on their way no more: all connections hold too much."""
        self._responses.release()
        self._requests.release()

    def take_data(self, stream: ByteStream, data: bytes) -> None:
        """Take received bytes."""
        if stream is self._broker:
            self._responses.feed(data)
        elif self._is_recorded and not self._early:
            self._requests.feed(data)
        else:  # early Pythons 3.11 read on if they were paused in `connection_made`
            self._early.append(data)
        self._unfinished.hold(self, self._responses.held + self._requests.held)

    def take_end(self, stream: ByteStream) -> None:
        """Note that a peer sends no more."""
        self._record_end(stream, is_reset=False)
        self._ended.add(stream)
        if len(self._ended) == 2:
            self.client.close()
            self._broker.close()
        else:
            self._other(stream).end()

    def take_loss(self, stream: ByteStream, *, is_reset: bool) -> None:
        """Close the other connection, once all is sent."""
        self._record_end(stream, is_reset=is_reset)
        other = self._other(stream)
        if is_reset:
            other.abort()
        else:
            other.close()
        if other.is_closed:
            self._forget()

    def set_full(self, stream: ByteStream, *, is_full: bool) -> None:
        """Read from one peer only as fast as the other one reads."""
        other = self._other(stream)
        if is_full:
            other.pause()
        else:
            other.resume()

    def _other(self, stream: ByteStream) -> ByteStream:
        return self._broker if stream is self.client else self.client

    def _addresses(self) -> tuple[Any, Any] | None:
        """
        Return the addresses to record: the client's own, and the broker's.

        A peer that has already reset its connection has none.
        """
        client, broker = self.client.addresses, self._broker.addresses
        if client is None or broker is None:
            return None
        is_same_family = len(client[0]) == len(broker[0])
        # A packet has two addresses of one family; so ours stands for the client's.
        return client[0] if is_same_family else broker[1], broker[0]

    def _record_end(self, stream: ByteStream, *, is_reset: bool) -> None:
        """Record the end of a side; chosen exchanges may still come before it."""
        side = CLIENT if stream is self.client else BROKER
        if self._talk.selection is not None:
            self._late_ends.append((side, is_reset))
        elif self._is_recorded:
            self._talk.sink.end(self._talk.number, side, is_reset=is_reset)

    def _give_up(self) -> None:
        """Pass on what is no Kafka."""
        self._talk.counts.foreign += 1
        self._talk.give_up = lambda: None
        self._requests.stop()
        self._responses.stop()

    def _fail(self, error: ReplayError) -> None:
        self._settings.warn(str(error))
        self.abort()

    def _forget(self) -> None:
        self.on_end(self)
        self._unfinished.hold(self, 0)
        if self._login is not None:
            self._login.close()
        if self._faults is not None:
            self._faults.close()
        if self._talk.selection is not None:
            self._talk.selection.end()
            for side, is_reset in self._late_ends:
                self._talk.sink.end(self._talk.number, side, is_reset=is_reset)
        if self._is_recorded:
            self._is_recorded = False
            self._talk.sink.forget(self._talk.number)
        self._talk.in_flight.fail(ReplayError("the broker", "closed the connection"))
