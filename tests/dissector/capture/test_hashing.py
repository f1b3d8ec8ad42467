from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dissector import open_capture
from dissector.capture.hashing import SECRET, hash_endpoints, hash_key
from dissector.capture.packets.networks import Networks, TaggedNetwork, find_slot
from dissector.capture.tcp.objects.connection_state import FlowKey
from dissector.capture.tcp.tables.connection_table import ConnectionTable
from dissector.capture.tcp.tables.flow_table import FlowTable
from dissector.kernel.named_rows import rows_of

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
    known, networks = ConnectionTable(), Networks()
    flows = FlowTable(known)
    for number, key in enumerate(KEYS["ports"][:100]):
        known.begin(key, 0, 0)
        flows.put(key, 2 * number)
        networks.add_tags(number + 1)
    restored_secret = pickle.dumps((flows, networks))
    other_secret()
    flows, networks = pickle.loads(restored_secret)
    assert [flows.owner(key) for key in KEYS["ports"][:101]] == [*range(0, 200, 2), -1]
    for number in range(100):
        place = find_slot(rows_of(networks.by_tags, TaggedNetwork), SECRET.data, number + 1)
        assert networks.by_tags[place].tolist() == (number + 1, number + 1)
    networks.add_tags(101)
    assert networks.names[101] == "vlan 101"
