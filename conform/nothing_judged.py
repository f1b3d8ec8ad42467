"""Explains reason no rule could be judged."""

from __future__ import annotations

from collections import Counter

from conform.registry.verdict import Verdict
from dissector.engine.reading.reader import Reading
from dissector.engine.reading.tls_report import unreadable_tls
from dissector.summary.statistics import health


def nothing_judged_reason(verdict: Verdict, reading: Reading | None) -> str:
    """
    Return why no rule could be judged, in one line.

    Args:
        verdict: A verdict without any judged rule.
        reading: The capture, read to its end; None for a running broker.
    """
    if not verdict.rules:
        other = "captures" if reading is None else "running brokers (--target HOST:PORT)"
        return f"the selected rules apply to {other}"
    reasons = Counter[str]()
    for tally in verdict.tallies.values():
        reasons.update(tally.unjudged)
    if reading is not None and (no_kafka := _no_kafka_reason(reading)):
        return no_kafka
    if not reasons:
        return "the capture contains nothing that the selected rules check"
    ((reason, _),) = reasons.most_common(1)
    return reason


def _no_kafka_reason(reading: Reading) -> str:
    """Return why a capture contains no Kafka; empty if it contains some."""
    health_report = health(reading, 0)
    count = health_report["connections"]
    if health_report["kafka_connections"]:
        return ""
    if not count:
        return "the capture has no TCP connection"
    if message := unreadable_tls(reading):
        return message
    ports = ", ".join(map(str, sorted(reading.options.ports)))
    return f"none of {count} TCP connections speaks Kafka" + f" on port {ports}" * bool(ports)
