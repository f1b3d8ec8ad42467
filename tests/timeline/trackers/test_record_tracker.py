"""`timeline --records`: the ways of chosen records."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from dissector import Options
from dissector.cli import main
from dissector.engine.reading.capture import Capture
from dissector.public import open_capture
from tests.corpus import FOLDER
from tests.timeline.test_timeline_docs import documented
from timeline.cli import timeline as command
from timeline.events.event import Event
from timeline.public import timeline


@pytest.mark.parametrize(
    ("name", "condition"),
    [
        ("demo.pcap", 'key == "customer-0"'),
        ("kafka4-reassignment.pcap", "offset < 3"),
        ("values/confluent-python.pcap", "value.id == 3"),
    ],
)
def test_each_chosen_record_has_its_events(name: str, condition: str) -> None:
    capture = open_capture(FOLDER / name, filter=condition)
    rows = capture.records().to_dicts()
    assert rows
    places = Counter(
        (row["api"] == "Produce", f"{row['topic']} {row['partition']}", row["packet"])
        for row in rows
    )
    found = list(timeline(FOLDER / name, records=condition))
    assert {each.kind for each in found} == {"record"}
    assert {each.event for each in found} <= documented("record")
    seen: Counter[tuple[bool, str, int | None]] = Counter()
    for each in found:
        (evidence,) = each.evidence
        if each.event != "committed":
            is_produced = evidence.api == "Produce"
            place = each.text.partition(" to " if is_produced else " of ")[2]
            place = place.partition(" by " if is_produced else ", offset ")[0]
            packet = evidence.request_packet if is_produced else evidence.response_packet
            seen[is_produced, place, packet] += 1
    assert seen == places
    small = Capture([str(FOLDER / name)], Options(window_bytes=2_000))
    assert list(map(told, timeline(small, records=condition))) == list(map(told, found))


def told(event: Event) -> tuple[object, ...]:
    # A fetch in a later window than its record's commit is behind it.
    return event.time_ns, event.subject, event.event, event.text


def test_the_way_of_an_order() -> None:
    found = list(timeline(FOLDER / "demo.pcap", records="value.order == 5"))
    assert [each.event for each in found[:4]] == ["produced", "fetched", "committed", "produced"]
    produced, fetched, committed = found[:3]
    assert produced.subject == "customer-0"
    assert produced.text == (
        "record to demo.orders 1 by shop at 127.0.0.1: offset 1, acknowledged after 313 ms"
    )
    assert fetched.text.endswith(
        "offset 1, by billing-1 at 127.0.0.1, 1.60 s after it was produced"
    )
    assert committed.text.startswith("group billing committed offset 24 of demo.orders 1, behind 1")
    without = [each for each in found if "without a response" in each.text]
    assert [each.end_ns for each in without] == [each.time_ns for each in without] != []


def test_other_kinds_forms_and_masks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["timeline", str(FOLDER / "demo.pcap"), "--records", 'key == "customer-0"']
    assert main([*words, "--kind", "record,cluster", "-T", "ndjson"], [("timeline", command)]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["kind"] for row in rows} == {"record", "cluster"}
    for form in ("mermaid", "csv"):
        assert main([*words, "-T", form], [("timeline", command)]) == 0
        assert "record to demo.orders 1" in capsys.readouterr().out
    trace = str(tmp_path / "a.perfetto")
    assert main([*words, "-T", "perfetto", "-o", trace], [("timeline", command)]) == 0
    assert main([*words, "--mask", "key"], [("timeline", command)]) == 0
    shown = capsys.readouterr().out
    assert "record ***  produced" in shown
    assert "customer-0" not in shown


def test_refused_records() -> None:
    found = timeline(FOLDER / "kafka4-errors.pcap", records="api == Produce and error != NONE")
    (refused,) = [each for each in found if each.event == "not produced"]
    assert refused.cause == "MESSAGE_TOO_LARGE"
    assert ": refused after " in refused.text
