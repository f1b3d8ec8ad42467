"""The report of a served capture."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from serve.report.serve_document import text_lines, write_report
from serve.report.serve_report import Miss, SeenRequest, ServeReport
from tests.junit import assert_valid

MISS = Miss("Fetch", 12, "c", "offset 7", "Fetch orders", "topics[].topic", "a", "b")


def test_equal_misses_are_counted_and_kept_once() -> None:
    report = ServeReport()
    report.add_request(SeenRequest("Fetch", 12, "c", 0, {}))
    for each in (MISS, MISS, replace(MISS, answered_by="upstream")):
        report.add_miss(each)
    report.garbage["a size of 9"] += 1
    report.faults["x close"] += 2
    lines = list(text_lines(report))
    assert lines[0] == "1 requests on 0 connections, 3 misses"
    assert "    2  x close" in lines
    assert "    1  a size of 9" in lines
    at = lines.index("Misses; 1 more or repeated ones are not listed")
    assert lines[at + 1 : at + 6] == [
        "  Fetch v12 from c: the capture lacks offset 7",
        "    nearest   Fetch orders",
        "    field     topics[].topic",
        "    sent      a",
        "    captured  b",
    ]
    assert lines[-1] == "    answered  by the upstream"
    assert not report.requests


def _report() -> ServeReport:
    report = ServeReport()
    for api in ("Fetch", "Metadata"):
        report.add_request(SeenRequest(api, 12, "c", 0, {}))
    report.add_miss(replace(MISS, what="password=hunter2 of <b>"))
    return report


def test_files_are_written_by_their_suffix(tmp_path: Path) -> None:
    texts = {}
    for suffix in ("txt", "ndjson", "xml", "html"):
        file = tmp_path / f"report.{suffix}"
        write_report(_report(), file)
        texts[suffix] = file.read_text(encoding="utf-8")
        assert "hunter2" not in texts[suffix]
    assert texts["txt"].startswith("2 requests on 0 connections, 1 misses\n")
    rows = [json.loads(line) for line in texts["ndjson"].splitlines()]
    assert [row["section"] for row in rows] == ["summary", "api", "api", "miss"]
    assert_valid(texts["xml"])
    assert 'tests="2" failures="1"' in texts["xml"]
    assert "<b>" not in texts["html"]
