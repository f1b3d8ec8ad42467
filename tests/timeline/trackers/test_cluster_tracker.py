"""The cluster: leaders, brokers, controllers, topics."""

from __future__ import annotations

from tests.timeline.events_of import brief, corpus_events, only


def test_a_broker_that_dies() -> None:
    events = corpus_events("kafka4-leader-change.pcap", "cluster")
    (moved,) = only(events, "leader moved")
    assert moved.text == (
        "kafka4-leader-change.orders 0: from broker 1 to broker 2, leader epoch 0 to 1"
    )
    assert [each.event for each in events].count("ISR shrunk") == 2
    assert only(events, "broker gone")[0].text == "broker 1 at 127.0.0.1:28713"


def test_a_reassignment() -> None:
    events = corpus_events("kafka4-reassignment.pcap", "cluster")
    assert "kafka4-reassignment.orders 0 to [3, 1]" in only(events, "reassignment")[0].text
    assert only(events, "ISR altered")


def test_the_quorum_elects_a_controller() -> None:
    events = corpus_events("kafka4-quorum.pcap", "cluster")
    assert only(events, "controller elected")[0].text == "controller 1 leads the quorum, epoch 3"
    assert not only(events, "controller changed")  # Metadata of KRaft names any broker


def test_topics() -> None:
    events = corpus_events("kafka4-errors.pcap", "cluster")
    assert ("topic created", "", True) in brief(events)
    assert ("topic not created", "INVALID_REPLICATION_FACTOR", True) in brief(events)
