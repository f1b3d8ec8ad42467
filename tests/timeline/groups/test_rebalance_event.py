"""The words of a rebalance."""

from __future__ import annotations

from tests.timeline.events_of import corpus_events, only


def test_the_text_has_waits_and_changes() -> None:
    event = only(corpus_events("kafka4-librdkafka-group.pcap", "group"), "rebalance")[1]
    first, second = "rdkafka-first-1f57eab9", "rdkafka-second-4f27faad"
    topic = "kafka4-librdkafka-group.orders"
    assert event.text == (
        f"generation 1 to 2: {second} joined; 2 members after 149 ms "
        "(PreparingRebalance 145 ms, CompletingRebalance 4.3 ms); "
        f"{second} waited 144 ms for {first} to join; consumption paused up to 5.3 ms ({first}); "
        f"assigned: {first} {topic} 0-1 -> {topic} 0, {second} {topic} 1"
    )


def test_cooperative_members_keep_their_partitions() -> None:
    name = "kafka4-librdkafka-group-cooperative.pcap"
    event = only(corpus_events(name, "group"), "rebalance")[1]
    assert "members consumed their other partitions meanwhile (cooperative)" in event.text
    assert "paused" not in event.text
