"""The state that both directions of a forwarded connection share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from record.packets.packet_sink import BROKER, CLIENT, PacketSink
from record.relay.byte_stream import ByteStream
from record.relay.exchange_selection import ExchangeSelection
from record.relay.login_tokens import Login
from record.relay.relay_settings import RelayCounts
from record.relay.requests_in_flight import ForwardedRequest, RequestsInFlight

Address = tuple[str, int]

ListenerOf = Callable[[Address, str], Address | None]
"""
Returns the address at which clients reach a broker, None to keep its own. The second argument is
the host to which the client has connected.
"""


@dataclass(slots=True, eq=False)
class Conversation:
    """
    One client's connection to one broker.

    Attributes:
        number: Its number.
        client: The connection to the client.
        broker: The connection to the broker.
        sink: Takes the bytes to record.
        counts: Counts what is seen.
        listener_of: Returns the address at which clients reach a broker.
        give_up: Called when the stream turns out to be no Kafka.
        login: The login of the client.
        in_flight: Requests without a response so far.
        held_back: Bytes for the broker that wait for a login of ours; None without one.
        selection: Chooses the exchanges to record; None to record all.
    """

    number: int
    client: ByteStream
    broker: ByteStream
    sink: PacketSink
    counts: RelayCounts
    listener_of: ListenerOf
    give_up: Callable[[], None]
    login: Login = field(default_factory=Login)
    in_flight: RequestsInFlight = field(default_factory=RequestsInFlight)
    held_back: list[bytes] | None = None
    selection: ExchangeSelection | None = None

    def send_to_broker(self, data: bytes) -> None:
        """Send bytes of the client on, after a login of ours."""
        if self.held_back is None:
            self.broker.write(data)
        else:
            self.held_back.append(data)

    def record(self, side: int, data: bytes) -> None:
        """Record bytes that belong to no exchange, unless exchanges are chosen."""
        if self.selection is None:
            self.sink.add(self.number, side, data)

    def skip(self, side: int, size: int) -> None:
        """Leave bytes of a side out of the recording."""
        if self.selection is None:
            self.sink.skip(self.number, side, size)

    def record_request(self, frame: bytes, request: ForwardedRequest) -> None:
        """Record a request, with its size."""
        if self.selection is None:
            self.sink.add(self.number, CLIENT, frame)
        else:
            self.selection.add_request(frame, request)

    def record_response(self, frame: bytes, request: ForwardedRequest) -> None:
        """Record the response to a request, with its size."""
        if self.selection is None:
            self.sink.add(self.number, BROKER, frame)
        else:
            self.selection.add_response(frame, request)

    def release(self) -> None:
        """Send what was held back."""
        waiting, self.held_back = self.held_back or (), None
        for each in waiting:
            self.broker.write(each)

    @property
    def local_host(self) -> str:
        """The host to which the client has connected."""
        addresses = self.client.addresses
        return str(addresses[1][0]) if addresses else ""
