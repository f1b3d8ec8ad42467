"""Topic ids and their names, from messages before or after."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np

from dissector import Capture, open_capture
from dissector.engine.facts.topic_table import TopicNames, may_define_names, name_defining_rows
from dissector.protocol.records import Record, new_batch
from tests.default_frames import request, response
from tests.tcp_captures import Packet, Wire, WireConnection, pcap_file, write

PRODUCE, FETCH, METADATA = 0, 1, 3
ORDERS, NAMELESS = UUID(int=5), UUID(int=2)

PARTITION = {
    "partition_index": 0,
    "error_code": 0,
    "high_watermark": 8,
    "last_stable_offset": 8,
    "log_start_offset": 0,
    "aborted_transactions": None,
    "preferred_read_replica": -1,
}


def fetched(connection: WireConnection, n: int, topic_id: UUID) -> WireConnection:
    """Fetch one record of a topic given by its id only."""
    batch = new_batch([Record(0, 0, 0, b"key", b"value", (), 7, 1000)], base_offset=7)
    partition = PARTITION | {"records": batch.to_bytes(fix_crc=True)}
    topic = {"topic_id": topic_id, "partitions": [partition]}
    connection.client(request(FETCH, 13, n, topics=[{"topic_id": topic_id, "partitions": []}]))
    return connection.broker(response(FETCH, 13, n, responses=[topic]))


def named(connection: WireConnection, n: int) -> WireConnection:
    """Request the names of topics."""
    topic = {
        "error_code": 0,
        "name": "orders",
        "topic_id": ORDERS,
        "is_internal": False,
        "partitions": [],
        "topic_authorized_operations": 0,
    }
    connection.client(request(METADATA, 12, n, topics=[]))
    return connection.broker(response(METADATA, 12, n, topics=[topic]))


def stdin(packets: list[Packet]) -> Capture:
    return open_capture("-", stdin=io.BytesIO(pcap_file(packets)))


def test_topic_names_from_metadata_before_after_and_in_a_later_file(tmp_path: Path) -> None:
    early, late, first, second = Wire(), Wire(), Wire(), Wire()
    fetched(named(early.connect().syn(), 1), 2, ORDERS)
    named(fetched(late.connect().syn(), 1, ORDERS), 2)
    fetched(first.connect().syn(), 1, ORDERS)
    second.now_ns += 10**9
    named(second.connect(50001).syn(), 1)
    captures = [
        open_capture(write(tmp_path / "early.pcap", early.packets)),
        open_capture(write(tmp_path / "late.pcap", late.packets)),
        open_capture(
            write(tmp_path / "1.pcap", first.packets), write(tmp_path / "2.pcap", second.packets)
        ),
        stdin(early.packets),
    ]
    for capture in captures:
        assert [e.topics for e in capture if e.api == "Fetch"] == [["orders"]]
    for capture in captures[:3]:
        assert capture.records()["topic"].to_list() == ["orders"]
    assert stdin(early.packets).records()["topic"].to_list() == ["orders"]


def test_topic_id_without_a_name_is_shown_as_text(tmp_path: Path) -> None:
    wire = Wire()
    named(fetched(wire.connect().syn(), 1, NAMELESS), 2)
    capture = open_capture(write(tmp_path / "a.pcap", wire.packets))
    assert [e.topics for e in capture] == [[str(NAMELESS)], ["orders"]]
    (record,) = capture.records().to_dicts()
    assert (record["topic"], record["topic_id"]) == (None, str(NAMELESS))


def test_topic_names_on_standard_input_come_from_earlier_messages() -> None:
    wire = Wire()
    connection = fetched(wire.connect().syn(), 1, ORDERS)
    fetched(named(connection, 2), 3, ORDERS)
    assert [e.topics for e in stdin(wire.packets)] == [[str(ORDERS)], ["orders"], ["orders"]]
    assert stdin(wire.packets).records()["topic"].to_list() == [None, "orders"]


def test_produce_v13_has_topic_names(tmp_path: Path) -> None:
    wire = Wire()
    data: list[dict[str, Any]] = [{"topic_id": ORDERS, "partition_data": []}]
    connection = wire.connect().syn().client(request(PRODUCE, 13, 1, acks=1, topic_data=data))
    named(connection.broker(response(PRODUCE, 13, 1)), 2)
    (produce, _) = open_capture(write(tmp_path / "a.pcap", wire.packets))
    assert produce.topics == ["orders"]


def test_rest_of_the_capture_is_searched_once_for_unknown_ids_only() -> None:
    requested = []

    def ask() -> dict[UUID, str]:
        requested.append(1)
        return {ORDERS: "orders"}

    names = TopicNames(ask)
    names.learn({NAMELESS: "known"})
    assert (names.name(NAMELESS), names.name("text"), len(requested)) == ("known", "text", 0)
    assert (names.name(ORDERS), names.find_name(UUID(int=3)), len(requested)) == ("orders", None, 1)
    assert (names.name(UUID(int=3)), len(requested)) == (str(UUID(int=3)), 1)


def test_the_topic_id_of_the_kraft_log_is_known() -> None:
    names = TopicNames()
    assert names.name(UUID(int=1)) == "__cluster_metadata"


def test_messages_with_definitions_of_topic_names() -> None:
    versions = [v for v in range(20) if may_define_names(METADATA, v)]
    assert versions[0] == 10, "KIP-516: since Metadata v10"
    assert not any(may_define_names(FETCH, v) for v in range(20))
    assert not may_define_names(999, 0)
    assert may_define_names(METADATA, 99), "read as the newest known version"


def test_rows_that_define_names_are_those_of_their_kinds() -> None:
    random = np.random.default_rng(2)
    keys = random.choice([-1, 0, 1, 3, 19, 60, 77, 32_767], 400)
    versions = random.choice([-32_768, -1, 0, 4, 12, 13, 16, 32_767], 400)
    expected = [
        row
        for row, (key, version) in enumerate(zip(keys.tolist(), versions.tolist(), strict=True))
        if key >= 0 and may_define_names(key, version)
    ]
    assert name_defining_rows(keys, versions).tolist() == expected
    assert 0 < len(expected) < 400
