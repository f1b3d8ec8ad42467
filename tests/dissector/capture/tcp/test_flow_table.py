from __future__ import annotations

import pickle
from collections.abc import Iterator

import numpy as np
import pytest

from dissector.capture.tcp.reassembly import Streams
from dissector.capture.tcp.segment_kernel import process_segments, rehash
from tests.dissector.capture.stage_reading import Reading
from tests.kernel_modes import MODES, running
from tests.tcp_captures import Wire, pcap_file


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> Iterator[None]:
    with running(request.param, rehash, process_segments):
        yield


def _wire(ports: int) -> Wire:
    wire = Wire()
    for port in range(1, ports):
        wire.connect(port).syn()
    return wire


@pytest.mark.usefixtures("mode")
def test_flows_are_found_after_growth_of_the_table() -> None:
    wire = _wire(900)
    first = list(wire.packets)
    reading = Reading(pcap_file([*first, *first]))
    assert len(reading.tcp.connections) == 899
    assert all(side.packets == 4 or side.packets == 2 for side in reading.tcp.connections[7].sides)


def test_flows_are_found_in_another_process() -> None:
    reading = Reading(pcap_file(_wire(30).packets))
    assert isinstance(reading.tcp, Streams)
    again: Streams = pickle.loads(pickle.dumps(reading.tcp))
    before, after = reading.tcp._flows, again._flows
    assert before.count == after.count == 3 * 29
    rows = np.arange(29)
    assert before.has_first_side(rows).all()
    assert after.has_first_side(rows).all()
