"""Sequence diagrams in Mermaid."""

from __future__ import annotations

import re

from tests.timeline.events_of import corpus_events
from timeline.events.event import Event, Evidence
from timeline.output.mermaid import MAX_EVENTS, mermaid_lines


def test_each_event_is_a_note_below_its_exchanges() -> None:
    lines = list(mermaid_lines(corpus_events("kafka4-librdkafka-group.pcap", "group")))
    assert lines[0].startswith("%%{init: ")
    lines = lines[1:]
    assert lines[:6] == [
        "sequenceDiagram",
        "    participant p1 as rdkafka-first at 127.0.0.1",
        "    participant p2 as 127.0.0.1:27623",
        "    participant p3 as rdkafka-second at 127.0.0.1",
        "    p1->>p2: JoinGroup (packet 74)",
        "    p2-->>p1: JoinGroup (packet 75)",
    ]
    assert sum(line.startswith("    Note over") for line in lines) == 8
    assert sum("(packet 74)" in line for line in lines) == 1
    syntax = r"    (participant p\d+ as .+|p\d+--?>>p\d+: .+|Note over p\d+(,p\d+)?: .+)"
    assert all(re.fullmatch(syntax, line) for line in lines[1:])
    packets = [int(found[1]) for line in lines if (found := re.search(r"\(packet (\d+)\)", line))]
    assert packets == sorted(packets)


def test_begins_of_connections_are_left_out_beside_other_events() -> None:
    every = list(corpus_events("kafka4-static-members.pcap", "group", "connection"))
    text = "\n".join(mermaid_lines(every))
    assert ", rebalance" in text
    assert ", connected" not in text
    alone = [each for each in every if each.kind == "connection"]
    assert ", connected" in "\n".join(mermaid_lines(alone))


def hostile(number: int) -> Event:
    proof = Evidence("a.pcap", 0, "h:1", "x;\n#y\x1b[31m", "b:2", number, None, 1, "Fetch")
    text = "a;b#c<script>\n%%{init}%%"
    return Event(number, number, "group", "g;\u202e", "joined", "", text, (proof,), True, ())


def test_captured_text_is_escaped() -> None:
    lines = list(mermaid_lines([hostile(1)]))[1:]
    assert len(lines) == 5
    for line in lines:
        bare = re.sub(r"#\d+;", "", line)
        assert not set(bare.replace("->>", "").replace("-->>", "")) & set("#;<>%\x1b\n\u202e")


def test_number_of_events_is_bounded() -> None:
    lines = list(mermaid_lines(map(hostile, range(MAX_EVENTS + 5))))
    assert lines[-1].endswith("5 more events, -Y and --kind select")
