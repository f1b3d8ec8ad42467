"""The state that both directions of a forwarded connection share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from record.packets.packet_sink import PacketSink
from record.relay.byte_stream import ByteStream
from record.relay.login_tokens import Login
from record.relay.relay_settings import RelayCounts
from record.relay.requests_in_flight import RequestsInFlight

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

    def send_to_broker(self, data: bytes) -> None:
        """Send bytes of the client on, after a login of ours."""
        if self.held_back is None:
            self.broker.write(data)
        else:
            self.held_back.append(data)

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
