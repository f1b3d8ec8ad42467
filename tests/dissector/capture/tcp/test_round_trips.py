"""What acknowledgements say: round-trip times, closed windows, bytes that only they prove."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dissector.capture.tcp.connections import Connection, Side
from dissector.capture.tcp.segment_kernel import process_segments
from tests.dissector.capture.handmade_packets import ACK, SYN
from tests.dissector.capture.stage_reading import Reading
from tests.kernel_modes import MODES, running
from tests.tcp_captures import Packet, Wire, WireConnection, pcap_file

MS = 1_000_000


@pytest.fixture(params=MODES, autouse=True)
def mode(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run the kernel in each mode."""
    with running(request.param, process_segments):
        yield


class Timed:
    """A connection whose packets are sent with pauses in milliseconds."""

    def __init__(self) -> None:
        self.wire = Wire()
        self.connection: WireConnection = self.wire.connect()

    def at(self, pause_ms: float) -> WireConnection:
        """Return the connection, which sends next a while after its newest packet."""
        newest = self.wire.packets[-1].time_ns if self.wire.packets else self.wire.now_ns
        self.wire.now_ns = newest + int(pause_ms * MS)
        return self.connection

    def shake_hands(self, broker_ms: float, client_ms: float) -> None:
        """Open it, with these halves of the RTT."""
        self.at(0).send_segment(0, SYN, before=True)
        self.at(broker_ms).send_segment(1, SYN | ACK, before=True)
        self.at(client_ms).ack(0)

    def read(self, packets: list[Packet] | None = None) -> Connection:
        """Return the connection as it is read."""
        (found,) = Reading(
            pcap_file(self.wire.packets if packets is None else packets)
        ).tcp.connections
        return found

    def sides(self) -> tuple[Side, Side]:
        """Return its sides as they are read."""
        return self.read().sides


def test_halves_of_the_handshake_show_the_place_of_the_capture() -> None:
    for halves in ((10, 0), (0, 10), (3, 7)):
        it = Timed()
        it.shake_hands(*halves)
        found = it.read()
        assert found.rtt_ns == 10 * MS
        assert [side.handshake_ns for side in found.sides] == [half * MS for half in halves]


def test_only_the_pure_acknowledgement_ends_the_handshake() -> None:
    it = Timed()
    it.shake_hands(10, 1)
    del it.wire.packets[2]
    it.at(500).send_segment(0, ACK, b"late request")
    found = it.read()
    assert (found.sides[0].handshake_ns, found.sides[1].handshake_ns) == (10 * MS, None)
    assert found.rtt_ns is None


def test_round_trips_are_smoothed_as_rfc_6298_says() -> None:
    it = Timed()
    it.shake_hands(8, 0)
    for milliseconds in (16, 8, 80):
        it.at(5).send_segment(0, ACK, b"request")
        it.at(milliseconds).ack(1)
    smoothed = 8.0
    for milliseconds in (16, 8, 80):
        smoothed += (milliseconds - smoothed) / 8
    a, b = it.sides()
    assert a.srtt_ns == pytest.approx(smoothed * MS, abs=4)
    assert b.srtt_ns == 0


def test_one_measurement_is_under_way_at_a_time() -> None:
    it = Timed()
    it.shake_hands(6, 0)
    it.at(1).send_segment(0, ACK, b"one")
    it.at(2).send_segment(0, ACK, b"two")
    it.at(4).ack(1)
    assert it.sides()[0].srtt_ns == 6 * MS


def test_bytes_that_are_sent_again_are_not_measured() -> None:
    it = Timed()
    it.shake_hands(8, 0)
    it.at(5).send_segment(0, ACK, b"request")
    it.at(200).retransmit(0, 0, 7)
    it.at(8).ack(1)
    assert it.sides()[0].srtt_ns == 8 * MS
    it = Timed()
    it.at(0).send_segment(0, SYN, before=True)
    it.at(1000).send_segment(0, SYN, before=True)
    it.at(3).send_segment(1, SYN | ACK, before=True)
    it.at(2).ack(0)
    found = it.read()
    assert found.rtt_ns is None
    assert [side.handshake_ns for side in found.sides] == [None, 2 * MS]


def test_acknowledgements_after_missing_bytes_are_not_measured() -> None:
    it = Timed()
    it.shake_hands(8, 0)
    it.at(5).send_segment(0, ACK, b"request")
    it.at(8).send_segment(1, ACK, b"response")
    lost = it.wire.packets.pop()
    it.at(900).send_segment(1, ACK, b"another")
    assert lost.payload == b"response"
    assert it.sides()[0].srtt_ns == 8 * MS


def test_a_closed_window_is_timed_from_its_announcement_to_its_opening() -> None:
    it = Timed()
    it.shake_hands(1, 0)
    it.connection.windows[1] = 0
    it.at(1).ack(1)
    it.at(30).send_segment(0, ACK, b"x")
    it.at(20).ack(1)
    it.connection.windows[1] = 4096
    it.at(50).ack(1)
    it.connection.windows[0] = 0
    it.at(10).ack(0)
    it.at(7).ack(1)
    assert [side.zero_window_ns for side in it.sides()] == [7 * MS, 100 * MS]
    it.connection.fin()  # its packets are no announcements
    assert it.sides()[1].zero_window_ns == 100 * MS


def test_acknowledgements_prove_bytes_that_are_not_in_the_capture() -> None:
    it = Timed()
    it.shake_hands(1, 0)
    it.connection.send(0, b"12345", b"67", b"89").broker(b"ok")
    packets = [each for each in it.wire.packets if each.payload != b"67"]
    a, b = it.read(packets).sides
    assert (a.gap_bytes, a.acked_not_captured, b.acked_not_captured) == (2, 2, 0)
    client = [each for each in it.wire.packets if each.side == 0]
    a, b = it.read(client).sides
    assert (a.bytes, b.bytes, b.gap_bytes, b.acked_not_captured) == (9, 0, 0, 2)


def test_what_nobody_acknowledged_is_not_proved() -> None:
    it = Timed()
    it.shake_hands(1, 0)
    it.connection.send_segment(0, ACK, b"12345")
    it.connection.send_segment(0, ACK, b"67")
    packets = [each for each in it.wire.packets if each.payload != b"12345"]
    a, _ = it.read(packets).sides
    assert (a.gap_bytes, a.acked_not_captured) == (5, 0)
