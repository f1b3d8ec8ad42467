"""Evidence: the same order in each process."""

from __future__ import annotations

from itertools import permutations

from timeline.events.event import Evidence, in_packet_order


def evidence(response_packet: int, correlation_id: int) -> Evidence:
    """Return an exchange whose request came in packet 19, with others."""
    ends = "10.0.0.1:40000", "client", "10.0.0.2:9092"
    return Evidence("a.pcap", 1, *ends, 19, response_packet, correlation_id, "Produce")


def test_requests_of_one_packet_are_in_the_order_of_their_responses() -> None:
    given = [evidence(20, 5), evidence(21, 3), evidence(21, 4)]
    for each in permutations(given):
        assert in_packet_order(each) == tuple(given)
