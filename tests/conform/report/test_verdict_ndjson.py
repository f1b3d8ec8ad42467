"""A verdict as lines of JSON."""

from __future__ import annotations

import json

from conform.report.report_formats import verdict_check
from tests.conform.verdicts import verdict


def test_ndjson() -> None:
    rows = [json.loads(line) for line in verdict_check(verdict(), "a.pcap").lines("ndjson")]
    assert rows[0] == {
        "section": "summary",
        "subject": "a.pcap",
        "errors": 2,
        "warnings": 1,
        "notes": 0,
        "errors_that_break_clients": 2,
        "not_grouped": 0,
        "rules": 3,
        "rules_judged": 2,
        "not_read": [],
        "faults": 0,
    }
    found = [row for row in rows if row["section"] == "finding"]
    assert [(row["rule"], row["packet"], row["count"]) for row in found] == [
        ("F03", 8, 2),  # packets count from 1
        ("F03", 13, 2),
        ("V03", 8, 1),
    ]
    assert found[2]["software"] == "shop 1.2"
    assert found[2]["span"] == [3, 9]
    assert (found[0]["software"], found[0]["path"], found[0]["span"]) == (None, None, None)
    assert [row["rank"] for row in found] == ["breaks clients"] * 2 + ["differs from Kafka"]
    rules = {row["rule"]: row for row in rows if row["section"] == "rule"}
    assert (rules["F03"]["judged"], rules["F03"]["broken"]) == (10, 2)
    assert list(rules["F15"]["unjudged"].values()) == [1234]
