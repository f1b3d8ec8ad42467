"""Requests of brokers are told from those of clients."""

from __future__ import annotations

from typing import Any

import pytest

from dissector.protocol.apis import KEYS, NAMES
from dissector.protocol.broker_requests import BETWEEN_BROKERS, is_between_brokers
from dissector.protocol.messages import decode_request
from tests import default_frames


def is_of_a_broker(name: str, version: int, **values: Any) -> bool:
    frame = default_frames.request(KEYS[name], version, 1, **values)
    return is_between_brokers(decode_request(frame[4:]))


def test_the_apis_exist() -> None:
    assert set(NAMES.values()) >= BETWEEN_BROKERS


@pytest.mark.parametrize("name", ["Vote", "AlterPartition", "WriteTxnMarkers"])
def test_apis_of_brokers(name: str) -> None:
    assert is_of_a_broker(name, 1)


def test_a_fetch_of_a_broker_has_the_id_of_its_replica() -> None:
    assert is_of_a_broker("Fetch", 11, replica_id=2)
    assert not is_of_a_broker("Fetch", 11, replica_id=-1)
    assert is_of_a_broker("Fetch", 17, replica_state={"replica_id": 2, "replica_epoch": -1})
    assert not is_of_a_broker("Fetch", 17)


def test_only_brokers_add_partitions_to_transactions_of_others() -> None:
    assert is_of_a_broker("AddPartitionsToTxn", 4)
    assert not is_of_a_broker("AddPartitionsToTxn", 3)
