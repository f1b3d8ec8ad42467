"""A verdict as rows; `section` is the type of a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from conform.registry.rank import Rank, Severity
from conform.registry.rule import Rule
from conform.registry.verdict import Finding, Kind, Verdict

_SHOWN_BYTES = 4096


def verdict_rows(verdict: Verdict, subject: str) -> Iterator[dict[str, Any]]:
    """Yield the summary, the findings with their counts, and the rules with theirs."""
    yield {
        "section": "summary",
        "subject": subject,
        **{f"{severity}s": verdict.count(severity) for severity in Severity},
        "errors_that_break_clients": verdict.count(Severity.ERROR, Rank.BREAKS),
        "not_grouped": verdict.uncounted,
        "rules": len(verdict.rules),
        "rules_judged": verdict.rules_judged,
        "not_read": verdict.not_read,
        "faults": len(verdict.faults),
    }
    for kind in verdict:
        for finding in kind.findings:
            yield {"section": "finding", **finding_row(kind, finding)}
    for fault in verdict.faults.values():
        yield {"section": "fault", **asdict(fault)}
    for rule in verdict.rules:
        tally = verdict.tallies[rule.id]
        counts = {"judged": tally.judged, "broken": tally.broken, "unjudged": dict(tally.unjudged)}
        yield {"section": "rule", **rule_row(rule), **counts}


def finding_row(kind: Kind, finding: Finding) -> dict[str, Any]:
    """Return a finding as a JSON object."""
    return {
        "rule": finding.rule.id,
        "title": finding.rule.title,
        "severity": finding.severity.value,
        "rank": finding.rank.value,
        "side": finding.side.value,
        "software": finding.software or None,
        "capture": finding.capture or None,
        "connection": finding.connection,
        "client": finding.client,
        "client_id": finding.client_id or None,
        "origin": finding.origin or None,
        "broker": finding.broker,
        "packet": finding.packet,  # from 1, as in exchanges
        "message": finding.message or None,
        "api": finding.api or None,
        "api_version": finding.version,
        "correlation_id": finding.correlation_id,
        "path": finding.path or None,
        "span": list(finding.span) if finding.span else None,
        "found": finding.found,
        "request": finding.request[:_SHOWN_BYTES].hex() or None,
        "cause": finding.cause or None,
        "asks": finding.rule.asks,
        "count": kind.count,
        "known": kind.known,
    }


def rule_row(rule: Rule) -> dict[str, Any]:
    """Return a rule as a JSON object."""
    return {
        "rule": rule.id,
        "title": rule.title,
        "severity": rule.severity.value,
        "rank": rule.rank.value,
        "source": rule.source,
        "asks": rule.asks,
        "example": rule.example,
        "judged_on": rule.on,
    }
