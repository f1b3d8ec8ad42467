"""Events as text."""

from __future__ import annotations

from dataclasses import replace

from tests.timeline.events_of import corpus_events
from timeline.output.event_text import event_lines


def test_a_headline_and_a_wrapped_text() -> None:
    events = corpus_events("kafka4-librdkafka-group.pcap", "group")
    lines = list(
        event_lines(events, lambda time_ns: f"{(time_ns - events[0].time_ns) / 1e9:.6f}", width=60)
    )
    assert lines[0] == (
        "    0.000000  group kafka4-librdkafka-group.group  joined, 13 ms  [packets 74-75]"
    )
    assert all(len(line) <= 60 for line in lines if line.startswith(" " * 14))


def test_an_uncertain_event_is_marked() -> None:
    (first, *_) = corpus_events("kafka4-librdkafka-group.pcap", "group")
    doubtful = replace(first, certain=False)
    assert ", uncertain  [packets" in next(iter(event_lines([doubtful], str)))


def test_control_characters_are_escaped() -> None:
    (first, *_) = corpus_events("kafka4-librdkafka-group.pcap", "group")
    event = replace(first, subject="\x1b[31m", text="a\x07b \u202e")
    text = "".join(event_lines([event], str))
    assert text.isprintable()


def test_repeated_events_show_their_number_and_some_packets() -> None:
    (first, *_) = corpus_events("kafka4-librdkafka-group.pcap", "group")
    proofs = tuple(
        first.evidence[0]._replace(request_packet=each, response_packet=None)
        for each in range(1, 60, 2)
    )
    repeated = replace(first, cause="why", count=1551, evidence=proofs)
    headline = next(iter(event_lines([repeated], str)))
    assert "joined: why x 1,551, 13 ms  [packets 1,3,5,7,9,11,...,59]" in headline
