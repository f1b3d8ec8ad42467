"""The report of a served capture."""

from __future__ import annotations

from dataclasses import replace

from serve.report.serve_report import Miss, SeenRequest, ServeReport

MISS = Miss("Fetch", 12, "c", "offset 7", "Fetch orders", "topics[].topic", "a", "b")


def test_equal_misses_are_counted_and_kept_once() -> None:
    report = ServeReport()
    report.add_request(SeenRequest("Fetch", 12, "c", 0, {}))
    for each in (MISS, MISS, replace(MISS, answered_by="upstream")):
        report.add_miss(each)
    report.garbage["a size of 9"] += 1
    report.faults["x close"] += 2
    lines = list(report.lines())
    assert lines[0] == "1 requests on 0 connections, 3 misses"
    assert "fault x close: 2 times" in lines
    assert "1 connections closed: a size of 9" in lines
    assert lines[-3].endswith(
        "Fetch v12 from c: the capture lacks offset 7; nearest is Fetch orders, "
        "with topics[].topic 'b' instead of 'a'"
    )
    assert lines[-2].endswith("(answered by the upstream)")
    assert lines[-1] == "1 more or repeated misses"
    assert not report.requests
