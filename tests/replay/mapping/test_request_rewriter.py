"""Captured requests for a target."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.conversion.change import Change
from cluster.conversion.resource_names import NameMap
from dissector.protocol.api import Api
from dissector.protocol.apis import all_apis
from dissector.protocol.embedded.membership.assignors import (
    CooperativeStickyUserData,
    StickyUserData,
)
from dissector.protocol.embedded.membership.connect_protocol import (
    ConnectAssignment,
    ConnectWorkerMetadata,
)
from dissector.protocol.embedded.membership.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from dissector.protocol.messages import Message
from dissector.protocol.records import Record, RecordBatch, new_batch, parse_records
from replay.mapping.id_map import IdMap
from replay.mapping.request_rewriter import Rewritten, rewrite
from tests.replay.support.builders import request, topology, uuid
from tests.value_sources import (
    DRAWN,
    Source,
    Version,
    every_api,
    go_through,
    sources,
    versions,
)

APIS = all_apis()
PREFIXED = NameMap(topic_map={"old": "new"}, prefix="p-")


def _unchanged(version: Version, source: Source) -> None:
    codec = version.schema.codec(version.version)
    frame = codec.build(source.value(version.schema, version.version))
    body = codec.parse(frame)
    message = Message("request", frame, len(frame), version.key, version.version, body=body)
    out = rewrite(message, version.version, IdMap())
    assert not out.refusal
    assert codec.build(out.body) == frame
    assert all(change.captured == change.sent and change.why for change in out.changes)


def _requests(found: Api) -> list[Version]:
    return [each for each in versions(found) if each.kind == "request"]


@pytest.mark.thinned(3)
@every_api
def test_requests_are_unchanged_without_a_target(found: Api) -> None:
    go_through(_requests(found), _unchanged, times=4)


@pytest.mark.long
@every_api
@given(data=st.data(), source=sources())
@DRAWN
def test_drawn_requests_are_unchanged_without_a_target(
    found: Api, data: st.DataObject, source: Source
) -> None:
    _unchanged(data.draw(st.sampled_from(_requests(found))), source)


def _produce(version: int, records: bytes, **names: Any) -> Message:
    topics = [{**names, "partition_data": [{"index": 1, "records": records}]}]
    body = {"transactional_id": "tx", "acks": -1, "timeout_ms": 9, "topic_data": topics}
    return request("Produce", version, body)


def _records(out: Rewritten) -> bytes:
    assert not out.refusal
    records: bytes = out.body.topic_data[0].partition_data[0].records
    return records


def _batch(sequence: int, codec: str = "none", values: tuple[bytes, ...] = (b"v",)) -> bytes:
    records = [Record(0, 0, i, None, value, (), i, 0) for i, value in enumerate(values)]
    return new_batch(
        records, codec=codec, producer_id=9, producer_epoch=2, base_sequence=sequence
    ).to_bytes()


@given(
    sequences=st.lists(st.integers(0, 2**31 - 1), min_size=1, max_size=4),
    codec=st.sampled_from(["none", "gzip", "snappy", "lz4", "zstd"]),
    content=st.lists(st.binary(max_size=20), min_size=1, max_size=3),
    live=st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1)),
)
def test_batches_have_the_mapped_producer_and_the_same_payload(
    sequences: list[int], codec: str, content: list[bytes], live: tuple[int, int]
) -> None:
    ids = IdMap(topology({"t": 7}))
    ids.producers.learn((9, 2), live)
    data = b"".join(_batch(sequence, codec, tuple(content)) for sequence in sequences)
    new = _records(rewrite(_produce(9, data, name="t"), 9, ids))
    assert len(new) == len(data)
    for old, batch, sequence in zip(
        parse_records(data), parse_records(new), sequences, strict=True
    ):
        assert isinstance(old, RecordBatch)
        assert isinstance(batch, RecordBatch)
        assert batch.crc_ok
        assert not batch.problems
        assert batch.payload == old.payload
        assert (batch.producer_id, batch.producer_epoch) == live
        assert batch.base_sequence == (sequence - sequences[0]) % 2**31
        assert batch.records == old.records


def test_sequences_begin_at_0_per_partition_and_retries_repeat_them() -> None:
    ids = IdMap(topology({"t": 7}))
    ids.producers.learn((9, 2), (70, 0))
    sent = []
    for sequence in (100, 101, 101, 102):
        out = rewrite(_produce(9, _batch(sequence), name="t"), 9, ids)
        (batch,) = parse_records(_records(out))
        assert isinstance(batch, RecordBatch)
        sent.append(batch.base_sequence)
    assert sent == [0, 1, 1, 2]
    assert Change("topic_data[0].partition_data[0].records.sequence", "sequence", 102, 2) in (
        out.changes
    )


def test_an_unknown_producer_is_an_error_with_its_id() -> None:
    out = rewrite(_produce(9, _batch(3), name="t"), 9, IdMap(topology({"t": 7})))
    assert "producer 9" in out.refusal
    assert out.unknown == ("producer_id", (9, 2))


def test_records_without_a_producer_are_unchanged() -> None:
    data = new_batch([Record(0, 0, 0, None, b"v", (), 0, 0)]).to_bytes()
    assert _records(rewrite(_produce(9, data, name="t"), 9, IdMap(topology({"t": 7})))) == data
    legacy = bytes(40)
    assert _records(rewrite(_produce(9, legacy, name="t"), 9, IdMap(topology({"t": 7})))) == legacy


def test_topic_ids_are_mapped_by_name() -> None:
    ids = IdMap(topology({"p-t": 70}), NameMap(prefix="p-"))
    ids.captured_topics.learn({uuid(7): "t"})
    out = rewrite(_produce(13, b"", topic_id=uuid(7)), 13, ids)
    assert out.body.topic_data[0].topic_id == uuid(70)
    assert Change("topic_data[0].topic_id", "topic_id", uuid(7), uuid(70)) in out.changes


def test_topic_ids_without_a_name_are_errors_and_unmapped_ones_reported() -> None:
    ids = IdMap(topology({"other": 70}))
    assert "no name for topic id" in rewrite(_produce(13, b"", topic_id=uuid(7)), 13, ids).refusal
    ids.captured_topics.learn({uuid(7): "t"})
    out = rewrite(_produce(13, b"", topic_id=uuid(7)), 13, ids)
    assert [change.why for change in out.changes if change.role == "topic_id"] == ["unknown"]


def test_topic_names_and_ids_are_converted_between_versions() -> None:
    ids = IdMap(topology({"p-t": 70}), NameMap(prefix="p-"))
    out = rewrite(_produce(9, b"", name="t"), 13, ids)
    assert out.body.topic_data[0].topic_id == uuid(70)
    ids.captured_topics.learn({uuid(7): "t"})
    out = rewrite(_produce(13, b"", topic_id=uuid(7)), 9, ids)
    assert out.body.topic_data[0].name == "p-t"
    assert "no name is known" in rewrite(_produce(13, b"", topic_id=uuid(8)), 9, ids).refusal


def test_names_are_mapped() -> None:
    ids = IdMap(topology({}), PREFIXED)
    out = rewrite(_produce(9, b"", name="old"), 9, ids)
    assert (out.body.transactional_id, out.body.topic_data[0].name) == ("p-tx", "new")
    assert {change.path for change in out.changes} == {"transactional_id", "topic_data[0].name"}


@pytest.mark.parametrize(
    ("version", "body", "path", "expected"),
    [
        (4, {"key_type": 0, "coordinator_keys": ["g"]}, "coordinator_keys", ["p-g"]),
        (0, {"key": "g"}, "key", "p-g"),
    ],
)
def test_coordinator_keys_are_mapped(
    version: int, body: dict[str, Any], path: str, expected: Any
) -> None:
    message = request("FindCoordinator", version, body)
    assert rewrite(message, version, IdMap(topology({}), PREFIXED)).body[path] == expected


@pytest.mark.parametrize(
    ("kind", "old", "new"), [(2, "t", "p-t"), (32, "g", "p-g"), (4, "3", "0"), (16, "m", "m")]
)
def test_resources_are_mapped_by_type(kind: int, old: str, new: str) -> None:
    resource = {"resource_type": kind, "resource_name": old, "configuration_keys": None}
    body = {"resources": [resource], "include_synonyms": False, "include_documentation": False}
    out = rewrite(request("DescribeConfigs", 4, body), 4, IdMap(topology({}), PREFIXED))
    assert out.body.resources[0].resource_name == new


def _join(version: int, protocol_type: str = "consumer") -> Message:
    subscription = {
        "topics": ["old", "t"],
        "user_data": b"mine",
        "owned_partitions": [{"topic": "t", "partitions": [0]}],
        "generation_id": 4,
        "rack_id": None,
    }
    metadata = b"\0\3" + ConsumerProtocolSubscription.codec(3).build(subscription)
    body = {
        "group_id": "g",
        "session_timeout_ms": 1,
        "rebalance_timeout_ms": 1,
        "member_id": "m-1",
        "protocol_type": protocol_type,
        "protocols": [{"name": "range", "metadata": metadata}],
    }
    return request("JoinGroup", version, body)


def test_topics_in_subscriptions_are_mapped() -> None:
    ids = IdMap(topology({}), PREFIXED)
    ids.members.learn("g", "m-1", "m-2")
    ids.members.learn_generation("g", "m-1", 4, 1)
    body = rewrite(_join(5), 5, ids).body
    metadata = body.protocols[0].metadata
    subscription = ConsumerProtocolSubscription.codec(3).parse(metadata[2:])
    assert (body.group_id, body.member_id) == ("p-g", "m-2")
    assert subscription.topics == ["new", "p-t"]
    assert subscription.owned_partitions[0].topic == "p-t"
    assert (subscription.generation_id, subscription.user_data) == (1, b"mine")


def test_bytes_of_other_protocols_are_unchanged() -> None:
    before = _join(5).body
    assert before is not None
    after = rewrite(_join(5, "sr"), 5, IdMap(topology({}), PREFIXED)).body
    assert after.protocols == before.protocols


def test_topics_in_assignments_are_mapped() -> None:
    assignment = {"assigned_partitions": [{"topic": "t", "partitions": [1]}], "user_data": None}
    data = b"\0\0" + ConsumerProtocolAssignment.codec(0).build(assignment)
    body = {
        "group_id": "g",
        "generation_id": 4,
        "member_id": "m",
        "assignments": [{"member_id": "m", "assignment": data}],
    }
    ids = IdMap(topology({}), PREFIXED)
    ids.members.learn("g", "m", "live")
    out = rewrite(request("SyncGroup", 3, body), 3, ids).body
    assert out.assignments[0].member_id == "live"
    built = ConsumerProtocolAssignment.codec(0).parse(out.assignments[0].assignment[2:])
    assert built.assigned_partitions[0].topic == "p-t"


def test_fetch_offsets_are_mapped_and_guesses_reported() -> None:
    partitions = [
        {
            "partition": 0,
            "current_leader_epoch": 3,
            "last_fetched_epoch": 3,
            "fetch_offset": offset,
            "partition_max_bytes": 1,
        }
        for offset in (100, 105)
    ]
    partitions[1]["partition"] = 1
    body = {
        "max_wait_ms": 1,
        "min_bytes": 1,
        "topics": [{"topic": "t", "partitions": partitions}],
        "forgotten_topics_data": [],
    }
    ids = IdMap(topology({"t": 7}, epoch=5))
    ids.offsets.learn("t", 0, 90, 0, 20)
    out = rewrite(request("Fetch", 12, body), 12, ids)
    first, second = out.body.topics[0].partitions
    assert (first.fetch_offset, second.fetch_offset) == (10, 105)
    assert (first.current_leader_epoch, first.last_fetched_epoch) == (5, -1)
    why = {change.path[-15:]: change.why for change in out.changes if change.role == "offset"}
    assert list(why.values()) == ["translated", "kept"]


def test_undecodable_requests_are_errors() -> None:
    assert rewrite(Message("request", b"", 0, 0, 99), 9, IdMap()).refusal


def _in_generation(old: int, new: int) -> IdMap:
    """Return an id mapping with another generation for member `m` of group `g`."""
    ids = IdMap(topology({}), NameMap(prefix="p-"))
    ids.members.learn("g", "m", "live-m")
    ids.members.learn_generation("g", "m", old, new)
    return ids


def _joins(name: str, metadata: bytes, protocol_type: str = "consumer") -> Message:
    body = {"group_id": "g", "member_id": "m", "protocol_type": protocol_type}
    return request("JoinGroup", 5, body | {"protocols": [{"name": name, "metadata": metadata}]})


HAD = [{"topic": "t", "partitions": [0, 3]}]
STICKY = StickyUserData.codec(1).build({"previous_assignment": HAD, "generation": 4})
OLD_STICKY = StickyUserData.codec(0).build({"previous_assignment": HAD})
COOPERATIVE = CooperativeStickyUserData.codec(0).build({"generation": 4})


@pytest.mark.parametrize(
    ("assignor", "kept", "expected"),
    [
        ("sticky", STICKY, STICKY[:-1].replace(b"\0\1t", b"\0\3p-t") + b"\7"),
        ("sticky", OLD_STICKY, OLD_STICKY.replace(b"\0\1t", b"\0\3p-t")),
        ("cooperative-sticky", STICKY, STICKY[:-1].replace(b"\0\1t", b"\0\3p-t") + b"\7"),
        ("cooperative-sticky", COOPERATIVE, COOPERATIVE[:-1] + b"\7"),
        ("range", COOPERATIVE, COOPERATIVE),
        ("sticky", b"garbage", b"garbage"),
    ],
)
def test_user_data_of_assignors_is_rewritten(assignor: str, kept: bytes, expected: bytes) -> None:
    codec = ConsumerProtocolSubscription.codec(0)
    metadata = b"\0\0" + codec.build({"topics": ["t"], "user_data": kept})
    out = rewrite(_joins(assignor, metadata), 5, _in_generation(4, 7))
    subscription = codec.parse(out.body.protocols[0].metadata[2:])
    assert (subscription.topics, subscription.user_data) == (["p-t"], expected)


def test_the_leader_in_metadata_of_connect_workers_is_mapped() -> None:
    assigned = ConnectAssignment.codec(1)
    worker = ConnectWorkerMetadata.codec(1)
    had = {"error": 0, "leader": "m", "leader_url": "u", "config_offset": 3, "assignment": []}
    allocation = b"\0\1" + assigned.build(had | {"revoked": []})
    knows = {"url": "u", "config_offset": 3, "allocation": allocation}
    ids = _in_generation(4, 7)
    joins = _joins("compatible", b"\0\1" + worker.build(knows), "connect")
    metadata = worker.parse(rewrite(joins, 5, ids).body.protocols[0].metadata[2:])
    assert metadata.allocation[:2] == b"\0\1"
    assert assigned.parse(metadata.allocation[2:]).leader == "live-m"
    gives = {"member_id": "m", "assignment": allocation}
    body = {"group_id": "g", "generation_id": 4, "member_id": "m", "assignments": [gives]}
    sync = rewrite(request("SyncGroup", 5, body | {"protocol_type": "connect"}), 5, ids)
    given_out = sync.body.assignments[0]
    assert assigned.parse(given_out.assignment[2:]).leader == given_out.member_id == "live-m"
