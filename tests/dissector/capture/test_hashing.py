from __future__ import annotations

import io
import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dissector import open_capture
from dissector.capture.formats.capture_reader import read_packets
from dissector.capture.hashing import SECRET, hash_endpoints, hash_key
from dissector.capture.packets.layers import Layers
from dissector.capture.packets.networks import Networks, TaggedNetwork, find_slot
from dissector.capture.tcp.reassembly import Streams
from dissector.kernel.named_rows import rows_of
from tests.reference.tcp.connection_state import FlowKey
from tests.tcp_captures import Wire, pcap_file

SLOTS = 1 << 12
CAPTURE = Path(__file__).parents[3] / "captures" / "demo.pcap"


@pytest.fixture(autouse=True)
def restored_secret() -> Iterator[None]:
    secret = SECRET.copy()
    yield
    SECRET[:] = secret


def other_secret(seed: int = 7) -> None:
    SECRET[:] = np.random.default_rng(seed).integers(1, 2**62, len(SECRET)) | 1


def most_in_a_slot(hashes: list[int]) -> int:
    return int(np.bincount(np.array(hashes) & (SLOTS - 1)).max())


KEYS: dict[str, list[FlowKey]] = {
    "networks": [(i, 0, 5, 1000, 0, 6, 9092) for i in range(2000)],
    "ports": [(0, 0, 5, i, 0, 6, 9092) for i in range(2000)],
    "high halves": [(0, i << 32, 5, 1000, 0, 6, 9092) for i in range(2000)],
    "negative": [(0, -i, -i, 1000, i, i, 9092) for i in range(2000)],
    # Multiples of a power of two, which collided under a former hash without a secret.
    "shifted": [(0, 0, i << 33, 1000, 0, 6, 9092) for i in range(2000)],
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_any_pattern_are_scattered(kind: str) -> None:
    other_secret()
    assert most_in_a_slot([hash_endpoints(SECRET.tolist(), *key) for key in KEYS[kind]]) < 12
    assert (
        most_in_a_slot([hash_key(SECRET.tolist(), key[0] << 12) for key in KEYS["networks"]]) < 12
    )


def test_hashes_depend_on_the_secret() -> None:
    key = KEYS["ports"][3]
    before = hash_endpoints(SECRET.tolist(), *key), hash_key(SECRET.tolist(), 5)
    other_secret()
    assert (hash_endpoints(SECRET.tolist(), *key), hash_key(SECRET.tolist(), 5)) != before


def test_rows_do_not_depend_on_the_secret() -> None:
    rows = [exchange.row() for exchange in open_capture(CAPTURE)]
    other_secret()
    assert [exchange.row() for exchange in open_capture(CAPTURE)] == rows


def test_tables_from_another_process_are_rehashed() -> None:
    wire, networks = Wire(), Networks()
    for number in range(100):
        wire.connect(1 + number).syn()
        networks.add_tags(number + 1)
    layers, streams = Layers(), Streams()
    stdin = io.BytesIO(pcap_file(wire.packets))
    windows = [layers.segments(each) for each in read_packets(["-"], stdin=stdin)]
    streams.feed(windows[0])
    restored_secret = pickle.dumps((streams, networks))
    other_secret()
    streams, networks = pickle.loads(restored_secret)
    streams.feed(windows[0])
    assert len(streams.connections) == 100
    assert all(each.sides[0].packets == 4 for each in streams.connections)
    for number in range(100):
        place = find_slot(rows_of(networks.by_tags, TaggedNetwork), SECRET.data, number + 1)
        assert networks.by_tags[place].tolist() == (number + 1, number + 1)
    networks.add_tags(101)
    assert networks.names[101] == "vlan 101"
