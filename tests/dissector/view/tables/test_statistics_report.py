from __future__ import annotations

from typing import Any

from dissector.view.tables.statistics_report import SECTIONS, report


def row(section: str, **values: Any) -> dict[str, Any]:
    return {name: values.get(name) for name in SECTIONS[section][1]}


def test_the_report() -> None:
    latency = {"min_ms": 0.5, "p50_ms": 1.0, "p95_ms": 2.0, "p99_ms": 3.0, "max_ms": 4.25}
    sizes = {"request_bytes": 345, "response_bytes": 60}
    apis = [
        row("apis", api="Produce", count=12, errors=1, unanswered=0, **latency, **sizes),
        row("apis", api="Fetch", count=1, errors=0, unanswered=1),
    ]
    topics = [row("topics", topic="\x1b[2J", count=1, errors=0, unanswered=0)]
    health = {"packets": 1234567, "gaps": 0, "tls_connections": 2}
    assert report({"apis": apis, "clients": [], "topics": topics}, health) == [
        "Per API",
        "api      count  errors  unanswered  min_ms  p50_ms  p95_ms  p99_ms  max_ms"
        "  request_bytes  response_bytes",
        "Produce     12       1           0   0.500   1.000   2.000   3.000   4.250"
        "            345              60",
        "Fetch        1       0           1",
        "",
        "Per topic",
        "topic    count  errors  unanswered  min_ms  p50_ms  p95_ms  p99_ms  max_ms"
        "  request_bytes  response_bytes",
        r"\x1b[2J      1       0           0",
        "",
        "Capture",
        "packets          1,234,567",
        "gaps                     0",
        "tls connections          2",
    ]


def test_a_capture_without_kafka() -> None:
    assert report({}, {"packets": 5}) == ["Capture", "packets  5"]


def test_tables_fit_the_terminal() -> None:
    lines = report(
        {"brokers": [row("brokers", broker="10.0.0.1:9092", count=1)]}, {}, terminal_width=30
    )
    assert max(map(len, lines)) == 30
