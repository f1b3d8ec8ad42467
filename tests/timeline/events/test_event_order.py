"""Events come in time order, with bounded memory."""

from __future__ import annotations

from timeline.events.event import MAX_EVIDENCE, Event, Evidence, in_packet_order
from timeline.events.event_order import HORIZON_NS, MAX_WAITING, EventOrder


def evidence(packet: int) -> Evidence:
    return Evidence("a.pcap", 0, "c:1", None, "b:2", packet, packet + 1, 7, "Fetch")


def event(time_ns: int) -> Event:
    proof = (evidence(1),)
    return Event(time_ns, time_ns, "group", "g", "joined", "", "", proof, True, ())


def test_an_event_waits_for_earlier_ones() -> None:
    order = EventOrder()
    order.add([event(5), event(2)])
    assert [each.time_ns for each in order.ready(4, 10)] == [2]
    order.add([event(3)])
    assert [each.time_ns for each in order.drain()] == [3, 5]


def test_events_wait_no_longer_than_the_horizon() -> None:
    order = EventOrder()
    order.add([event(5)])
    assert not list(order.ready(0, HORIZON_NS))
    assert list(order.ready(0, HORIZON_NS + 6))


def test_number_of_waiting_events_is_bounded() -> None:
    order = EventOrder()
    order.add(map(event, range(1, MAX_WAITING + 3)))
    assert len(list(order.ready(0, 0))) == 2


def test_evidence_is_in_packet_order_and_bounded() -> None:
    many = [evidence(packet) for packet in range(100, 0, -1)]
    found = in_packet_order([*many, *many])
    assert [each.request_packet for each in found][:2] == [1, 2]
    assert len(found) == MAX_EVIDENCE
