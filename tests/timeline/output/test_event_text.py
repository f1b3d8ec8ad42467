"""Events as text."""

from __future__ import annotations

from dataclasses import replace

from tests.timeline.events_of import corpus_events
from timeline.output.event_text import event_lines


def test_a_headline_and_a_wrapped_text() -> None:
    lines = list(event_lines(corpus_events("kafka4-librdkafka-group.pcap", "group"), width=60))
    assert lines[0] == (
        "    0.000000  group kafka4-librdkafka-group.group  joined, 13 ms  [packets 74-75]"
    )
    assert all(len(line) <= 60 for line in lines if line.startswith(" " * 14))


def test_an_uncertain_event_is_marked() -> None:
    (first, *_) = corpus_events("kafka4-librdkafka-group.pcap", "group")
    assert ", uncertain  [packets" in next(iter(event_lines([replace(first, certain=False)])))


def test_control_characters_are_escaped() -> None:
    (first, *_) = corpus_events("kafka4-librdkafka-group.pcap", "group")
    text = "".join(event_lines([replace(first, subject="\x1b[31m", text="a\x07b \u202e")]))
    assert text.isprintable()
