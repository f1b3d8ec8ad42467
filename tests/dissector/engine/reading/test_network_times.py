"""Which part of a latency is the network's, and which the broker's."""

from __future__ import annotations

import io

import pytest

from dissector.public import Exchange, dissect
from tests.default_frames import request, response
from tests.dissector.capture.handmade_packets import ACK, SYN
from tests.tcp_captures import START_NS, Packet, Wire, WireConnection, pcap_file

MS = 1_000_000
REQUEST, RESPONSE = request(12, 4, 1), response(12, 4, 1)


class Scene:
    """A connection, whose packets are captured at times in milliseconds."""

    def __init__(self) -> None:
        self.wire = Wire()
        self.connection = self.wire.connect()

    def at(self, milliseconds: float) -> WireConnection:
        """Return the connection, which sends next at this time."""
        self.wire.now_ns = START_NS + int(milliseconds * MS)
        return self.connection

    def shake_hands(self, broker_ms: float, client_ms: float) -> None:
        """Open it; the RTTs are those from the place of the capture."""
        self.at(0).send_segment(0, SYN, before=True)
        self.at(broker_ms).send_segment(1, SYN | ACK, before=True)
        self.at(broker_ms + client_ms).ack(0)

    def times(self, packets: list[Packet] | None = None) -> tuple[float | None, float | None]:
        """Return the parts of the network and of the broker in the newest exchange."""
        exchange = self.exchanges(packets)[-1]
        return exchange.network_ms, exchange.server_ms

    def exchanges(self, packets: list[Packet] | None = None) -> list[Exchange]:
        """Return all exchanges."""
        return [*dissect(io.BytesIO(pcap_file(self.wire.packets if packets is None else packets)))]


@pytest.mark.parametrize("broker_ms", [8, 3, 0])
def test_the_time_of_the_broker_is_the_same_wherever_the_capture_was_taken(broker_ms: int) -> None:
    it = Scene()
    it.shake_hands(broker_ms, 8 - broker_ms)
    it.at(100).send_segment(0, ACK, REQUEST)
    it.at(100 + broker_ms + 50).send_segment(1, ACK, RESPONSE)
    (exchange,) = it.exchanges()
    assert exchange.latency_ms == broker_ms + 50
    assert (exchange.network_ms, exchange.server_ms) == (broker_ms, 50)


def test_the_transfer_of_a_response_is_the_network() -> None:
    it = Scene()
    it.shake_hands(8, 0)
    it.at(100).send_segment(0, ACK, REQUEST)
    it.at(158).send_segment(1, ACK, RESPONSE[:5])
    it.at(188).send_segment(1, ACK, RESPONSE[5:])
    assert it.times() == (8 + 30, 50)


def test_what_was_lost_on_the_way_to_the_broker_is_the_network() -> None:
    it = Scene()
    it.shake_hands(8, 0)
    it.at(100).send_segment(0, ACK, REQUEST)
    it.at(400).retransmit(0, 0, len(REQUEST))
    it.at(458).send_segment(1, ACK, RESPONSE)
    assert it.times() == (308, 50)


def test_bytes_that_are_sent_again_soon_may_have_arrived() -> None:
    it = Scene()
    it.shake_hands(8, 0)
    it.at(100).send_segment(0, ACK, REQUEST)
    it.at(120).retransmit(0, 0, len(REQUEST))
    it.at(458).send_segment(1, ACK, RESPONSE)
    assert it.times() == (None, None)


def test_without_the_handshake_acknowledgements_alone_show_the_way() -> None:
    it = Scene()
    it.shake_hands(8, 0)
    it.at(100).send_segment(0, ACK, REQUEST)
    it.at(104).ack(1)
    it.at(158).send_segment(1, ACK, RESPONSE)
    assert it.times(it.wire.packets[3:]) == (None, None)  # the first bytes are not known to be next
    it.at(200).send_segment(0, ACK, REQUEST)
    it.at(206).ack(1)
    it.at(258).send_segment(1, ACK, RESPONSE)
    assert it.times(it.wire.packets[3:]) == (6, 52)


def test_acknowledgements_that_may_be_delayed_or_came_with_responses_show_no_way() -> None:
    it = Scene()
    it.shake_hands(8, 0)
    for start in (100, 300):
        it.at(start).send_segment(0, ACK, REQUEST)
        it.at(start + 48).ack(1)
        it.at(start + 58).send_segment(1, ACK, RESPONSE)
    assert it.times() == (8, 50)
    assert it.times(it.wire.packets[3:]) == (None, None)
    alone = [each for each in it.wire.packets[3:] if each.payload]
    assert it.times(alone) == (None, None)


def test_the_way_is_that_of_the_last_seconds() -> None:
    it = Scene()
    it.shake_hands(8, 0)
    for start, rtt in ((100, 8), (11_000, 20), (12_000, 25)):
        it.at(start).send_segment(0, ACK, REQUEST)
        it.at(start + rtt).ack(1)
        it.at(start + 60).send_segment(1, ACK, RESPONSE)
    assert [each.network_ms for each in it.exchanges()] == [8, 20, 20]


def test_no_part_is_negative_or_known_where_the_latency_is_not() -> None:
    it = Scene()
    it.shake_hands(8, 0)
    it.at(100).send_segment(0, ACK, REQUEST)
    it.at(103).send_segment(1, ACK, RESPONSE)  # faster than the handshake
    assert it.times() == (3, 0)
    it.at(200).send_segment(0, ACK, request(12, 4, 2))
    it.at(190).send_segment(1, ACK, response(12, 4, 2))  # the clock was set back
    assert it.times() == (None, None)
    it.at(300).send_segment(0, ACK, request(12, 4, 3))
    assert it.times() == (None, None)
