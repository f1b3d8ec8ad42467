from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.capture.tcp.fast_path.flow_lookup import ANY_NETWORK, rehash
from dissector.capture.tcp.objects.connection_state import FlowKey
from dissector.capture.tcp.tables.connection_table import ConnectionTable
from dissector.capture.tcp.tables.flow_table import FlowTable, any_network_key
from tests.kernel_modes import MODES, running

ADDRESSES = st.sampled_from([0, 1, 2, -1, -(2**63), 2**63 - 1, 0xFFFF_0A00_0001])
PORTS = st.sampled_from([0, 1, 9092, 65535])
KEYS = st.tuples(st.integers(0, 2), ADDRESSES, ADDRESSES, PORTS, ADDRESSES, ADDRESSES, PORTS)


def _back(key: FlowKey) -> FlowKey:
    network, high, low, port, to_high, to_low, to_port = key
    return network, to_high, to_low, to_port, high, low, port


@given(st.lists(KEYS, max_size=60))
def test_each_direction_in_each_network_belongs_to_its_newest_owner(keys: list[FlowKey]) -> None:
    known = ConnectionTable()
    flows = FlowTable(known)
    want: dict[FlowKey, int] = {}
    for number, key in enumerate(keys):
        known.begin(key, 0, 0)
        owners = [
            (_back(key), 2 * number + 1),
            (key, 2 * number),
            (any_network_key(key), 2 * number),
        ]
        for each, owner in owners:
            flows.put(each, owner)
            want[each] = owner
    assert {key: flows.owner(key) for key in want} == want
    assert flows.count == len(want)
    for key in keys:
        other = (7, *key[1:])
        assert flows.owner(other) < 0
    firsts = [owner >> 1 for key, owner in want.items() if key[0] != ANY_NETWORK and owner % 2 == 0]
    assert flows.first_sides() == firsts


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> Iterator[None]:
    with running(request.param, rehash):
        yield


@pytest.mark.usefixtures("mode")
def test_flows_are_found_after_growth_of_the_table() -> None:
    known = ConnectionTable()
    flows = FlowTable(known)
    keys: list[FlowKey] = [
        (0, 0, host, port, 0, 5, 9092) for host in range(50) for port in range(50)
    ]
    for number, key in enumerate(keys):
        known.begin(key, 0, 0)
        flows.put(_back(key), 2 * number + 1)
        flows.put(key, 2 * number)
    assert [flows.owner(key) for key in keys] == list(range(0, 2 * len(keys), 2))
    assert [flows.owner(_back(key)) for key in keys] == list(range(1, 2 * len(keys), 2))


def test_a_flow_without_an_owner_keeps_its_slot() -> None:
    known = ConnectionTable()
    flows = FlowTable(known)
    key: FlowKey = (0, 1, 2, 3, 4, 5, 6)
    known.begin(key, 0, 0)
    flows.put(any_network_key(key), 0)
    flows.set_owners([flows.find(any_network_key(key))], [-1])
    assert flows.owner(any_network_key(key)) < 0
    known.begin(key, 0, 0)
    flows.put(any_network_key(key), 2)
    assert (flows.owner(any_network_key(key)), flows.count) == (2, 1)
