"""A verdict as text."""

from __future__ import annotations

from conform.registry.rank import Severity
from conform.registry.rule import Side
from conform.report.report_formats import verdict_check
from conform.report.verdict_text import (
    location_text,
    rule_lines,
    side_text,
    summary_line,
)
from tests.conform.verdicts import F03, finding, verdict


def test_text() -> None:
    assert list(verdict_check(verdict(), "a.pcap").lines("text")) == [
        "error F03 Responses out of order (2 times; breaks clients)",
        f"  expected  {F03.asks}",
        "  found     request 3 came after 4",
        "            broker [fd00::1]:9092: Metadata v9 response, connection 4, packet 8, id 2",
        "  found     request 8 came after 9",
        "            broker [fd00::1]:9092: Metadata v9 response, connection 4, packet 13, id 2",
        "",
        "warning V03 Invalid name or version of the client software (once; differs from Kafka)",
        "  expected  Name and version of the client software match "
        "[a-zA-Z0-9](?:[a-zA-Z0-9\\-.]*[a-zA-Z0-9])?",
        "  found     the name is '<b>\\x1b&'",
        "            client shop 1.2 10.0.0.1:50000: Metadata v9 request, connection 4, packet 8, "
        "id 2, client_software_name, bytes [3..9)",
        "",
        "Not judged",
        "  1,234 times: the capture begins in the middle of the connection (F15)",
        "",
        "a.pcap: 2 errors (2 break clients), 1 warning, 0 notes; "
        "2 of 3 rules were judged, 11 times",
    ]


def test_baseline_findings_are_only_counted() -> None:
    known = verdict()
    next(iter(known)).known = True
    lines = list(verdict_check(known, "a.pcap").lines("text"))
    assert not any("F03" in line for line in lines)
    assert "0 errors, 1 warning, 0 notes, 2 in the baseline;" in lines[-1]


def test_findings_beyond_the_limit_are_counted_as_not_grouped() -> None:
    much = verdict()
    much.uncounted = 5
    assert "5 more not grouped" in summary_line(much, "a.pcap")


def test_a_finding_without_packet_or_field() -> None:
    first = next(iter(verdict())).first
    bare = type(first)(first.rule, first.severity, first.side, "x", connection=3)
    assert location_text(bare) == "connection 3"


def test_a_rule_is_explained() -> None:
    lines = list(rule_lines(F03))
    assert lines[0] == "F03 Responses out of order"
    assert f"source    {F03.source}" in lines
    assert lines[-1] == "checked   in a capture"


def test_clients_are_shown_by_their_id() -> None:
    values = {"software": "shop 1.2", "client_id": "billing\x1b1"}
    of_client = finding(F03, Side.CLIENT, "x", Severity.ERROR, **values)
    assert side_text(of_client) == 'client shop 1.2 "billing\\x1b1" 10.0.0.1:50000'
    of_broker = finding(F03, Side.BROKER, "x", Severity.ERROR, **values)
    assert side_text(of_broker) == "broker shop 1.2 [fd00::1]:9092"
