"""Clients that differ from the captured ones: other assignors, one share member, other order."""

from __future__ import annotations

import pytest

from dissector.protocol.error_codes import error_code
from dissector.protocol.records import Record, new_batch
from serve.answers.produced_comparison import counterparts, first_difference
from serve.public import Cassette
from serve.recording.captured_log import CapturedLogs, split_batches
from tests.replay.support.replay_captures import SHIPPED
from tests.serve.support.other_members import BY_EPOCHS, NAME, beat_alone, join
from tests.serve.support.raw_client import RawClient

SHARES = "kafka4-java-share-group"
SWEEP = "kafka39-sweep-groups"
INCONSISTENT = error_code("INCONSISTENT_GROUP_PROTOCOL")


def test_a_member_with_another_assignor_gets_one_that_it_offers() -> None:
    with (
        Cassette(SHIPPED / f"{NAME}.pcap", strict=True) as served,
        RawClient(served.bootstrap) as client,
        RawClient(served.bootstrap, "another") as other,
    ):
        joined = join(client, "cooperative-sticky")
        assert (joined.error_code, joined.protocol_name) == (0, "cooperative-sticky")
        assert joined.leader == joined.member_id
        assert [each.member_id for each in joined.members] == [joined.member_id]
        given = [{"member_id": joined.member_id, "assignment": b"mine"}]
        identity = {"group_id": f"{NAME}.group", "member_id": joined.member_id}
        identity |= {"generation_id": joined.generation_id}
        synced = client.ask("SyncGroup", 3, **identity, assignments=given)
        assert (synced.error_code, synced.assignment) == (0, b"mine")
        assert client.ask("Heartbeat", 3, **identity).error_code == 0
        assert join(other, "roundrobin").error_code == INCONSISTENT
    assert [miss.api for miss in served.misses] == ["JoinGroup"]
    assert "(cooperative-sticky); the captured one is range" in served.misses[0].what


def test_a_member_without_an_assignor_in_common_is_refused() -> None:
    with (
        Cassette(SHIPPED / f"{NAME}.pcap", strict=True) as served,
        RawClient(served.bootstrap, "rdkafka-first") as client,
        RawClient(served.bootstrap, "rdkafka-second") as other,
    ):
        assert join(client, "range", "roundrobin").protocol_name == "range"
        assert join(other, "cooperative-sticky").error_code == INCONSISTENT
    assert [miss.api for miss in served.misses] == ["JoinGroup"]


def test_one_of_two_share_members_is_served_alone() -> None:
    with (
        Cassette(SHIPPED / f"{SHARES}.pcap", strict=True) as served,
        RawClient(served.bootstrap, "anyone") as client,
    ):
        beat = {"group_id": f"{SHARES}.orders.group", "rack_id": None}
        joined = client.ask(
            "ShareGroupHeartbeat",
            1,
            member_id="alone",
            member_epoch=0,
            subscribed_topic_names=[f"{SHARES}.orders"],
            **beat,
        )
        member, assignment = joined.member_id, joined.assignment
        while assignment is None:
            again = client.ask(
                "ShareGroupHeartbeat",
                1,
                member_id=member,
                member_epoch=joined.member_epoch,
                subscribed_topic_names=None,
                **beat,
            )
            assert again.error_code == 0
            assignment = again.assignment
        fetched = client.ask(
            "ShareFetch",
            1,
            group_id=f"{SHARES}.orders.group",
            member_id=member,
            share_session_epoch=0,
            max_wait_ms=10,
            topics=[],
        )
        assert any(part.records for topic in fetched.responses for part in topic.partitions)
        session = {"group_id": f"{SHARES}.orders.group", "member_id": member, "topics": []}
        for epoch in range(1, 60):
            fetched = client.ask(
                "ShareFetch", 1, share_session_epoch=epoch, max_wait_ms=1, **session
            )
            assert fetched.error_code == 0
        assert not fetched.responses  # all captured ones were returned
    assert not served.misses


def _batch(base: int, producer_id: int, value: bytes) -> bytes:
    record = Record(value=value)
    return new_batch(
        [record], base_offset=base, producer_id=producer_id, producer_epoch=0
    ).to_bytes()


@pytest.mark.parametrize(("sent", "differs"), [((b"c", b"d"), False), ((b"c", b"x"), True)])
def test_producers_are_compared_by_what_each_sent(sent: tuple[bytes, ...], differs: bool) -> None:
    log = CapturedLogs().at("orders", 0)
    for base, producer_id, value in ((0, 7, b"a"), (1, 8, b"b"), (2, 7, b"c"), (3, 7, b"d")):
        for batch in split_batches(_batch(base, producer_id, value)):
            log.add(batch)
    offsets = counterparts(log, (7, 0), range(1, 3))
    found = first_difference(log, b"".join(_batch(0, 7, each) for each in sent), offsets)
    assert (found is not None) is differs


def test_a_member_that_waits_for_others_in_vain_is_a_miss() -> None:
    with (
        Cassette(SHIPPED / f"{BY_EPOCHS}.pcap", strict=True) as served,
        RawClient(served.bootstrap, "rdkafka-848-second") as client,
    ):
        beat_alone(client)
        assert not served.misses
    (miss,) = served.misses
    assert miss.what == f"an assignment of group {BY_EPOCHS}.group without its other members"


def test_a_member_that_its_join_assigned_waits_for_nobody() -> None:
    """In version 0 the broker gives the member its id, and here all partitions at once."""
    with (
        Cassette(SHIPPED / f"{SWEEP}.pcap", strict=True) as served,
        RawClient(served.bootstrap, "kafkashark-sweep") as client,
    ):
        values = {"group_id": "sweep.consumer.0", "instance_id": None, "rack_id": None}
        values |= {"rebalance_timeout_ms": 30_000, "server_assignor": None, "topic_partitions": []}
        member, epoch = "", 0
        for names in (["sweep.groups.read"], None, None, None):
            given = {"member_id": member, "member_epoch": epoch, "subscribed_topic_names": names}
            answer = client.ask("ConsumerGroupHeartbeat", 0, **given, **values)
            assert (answer.error_code, bool(answer.assignment)) == (0, bool(names))
            member, epoch = answer.member_id, answer.member_epoch
    assert not served.misses
