"""A client that repeats the requests of a capture gets the captured answers."""

from __future__ import annotations

import pytest

from dissector.protocol.apis import KEYS
from dissector.protocol.error_codes import error_code
from dissector.public import open_capture
from serve.public import Cassette
from tests.corpus import FOLDER
from tests.serve.support.raw_client import RawClient
from tests.serve.support.repeated_capture import Difference, differences

LEAVES = "heartbeat_interval_ms"
"""0 for a member that leaves, which does not look at it; the answer repeats the last interval."""

OF_STREAMS = (LEAVES, "active_tasks", "member_epoch", "standby_tasks", "status", "warmup_tasks")

EXPECTED: dict[str, set[Difference]] = {
    "kafka4-librdkafka-group": set(),
    "kafka4-librdkafka-group-848": {("ConsumerGroupHeartbeat", LEAVES)},
    # An answer with news comes as soon as the members that it presumes are there.
    "kafka4-java-share-group": {
        ("ShareGroupHeartbeat", name) for name in (LEAVES, "member_epoch", "assignment")
    },
    "kafka44-java-streams-group": {
        ("Fetch", "session_id"),  # all partitions are in each answer
        *(("StreamsGroupHeartbeat", name) for name in OF_STREAMS),
        ("StreamsGroupHeartbeat", "acceptable_recovery_lag"),
        ("StreamsGroupHeartbeat", "task_offset_interval_ms"),
        ("StreamsGroupHeartbeat", "member_id"),
    },
    "kafka4-librdkafka-transactions": set(),
    "kafka4-librdkafka-fenced": set(),
    "kafka4-aiokafka-transactions": set(),
    # Commits of live members are stored, also those that a broker refused.
    "kafka4-errors": {("OffsetCommit", "topics.partitions.error_code")},
    # All topics come in another order; batches are whole, message sets are made anew.
    "kafka39-kafka-python-as-0.10.1": {
        ("Fetch", "responses.partitions.records"),
        *(("Metadata", f"topics.{name}") for name in ("is_internal", "name", "partitions")),
    },
}


@pytest.mark.thinned(3)
@pytest.mark.parametrize("name", EXPECTED)
def test_a_repeated_request_has_the_captured_answer(name: str) -> None:
    assert differences(FOLDER / f"{name}.pcap") <= EXPECTED[name]


def test_a_producer_that_failed_to_the_end_fails_again() -> None:
    capture = FOLDER / "kafka4-sweep-data.pcap"
    (failed,) = [*open_capture(capture, filter="api == Produce and error == UNKNOWN_TOPIC_ID")]
    assert failed.request is not None
    frame = failed.request.frame
    with (
        Cassette(capture, strict=True) as served,
        RawClient(served.bootstrap, failed.client_id or "") as client,
    ):
        for _ in range(3):
            client.send(len(frame).to_bytes(4, "big") + frame)
            answer = client.response(KEYS["Produce"], failed.api_version or 0).body
            assert answer is not None
            (topic,) = answer.responses
            assert topic.partition_responses[0].error_code == error_code("UNKNOWN_TOPIC_ID")
