"""A report of advice as rows; `section` is the type of a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from advise.registry.advice import RANKS, Advice
from advise.registry.advice_report import AdviceFinding, AdviceReport
from advise.report.advice_text import library_of


def advice_rows(report: AdviceReport, subject: str) -> Iterator[dict[str, Any]]:
    """Yield the summary, the findings, and the advices with what was judged of each."""
    yield {
        "section": "summary",
        "subject": subject,
        **{str(rank): report.count(rank) for rank in RANKS},
        "clients": report.clients,
        "exchanges": report.exchanges,
        "begin_ns": report.begin_ns,
        "end_ns": report.end_ns,
        "advices": len(report.advices),
        "advices_judged": sum(bool(count) for count in report.judged.values()),
    }
    for finding in report:
        yield {"section": "finding", **finding_row(finding)}
    for advice in report.advices:
        counts = {
            "judged": report.judged[advice.id],
            "unjudged": report.unjudged.get(advice.id, {}),
        }
        yield {"section": "advice", **advice_row(advice), **counts}


def finding_row(finding: AdviceFinding) -> dict[str, Any]:
    """Return a finding as a JSON object."""
    library = library_of(finding)
    return {
        "advice": finding.advice.id,
        "rank": finding.rank.value,
        "title": finding.advice.title,
        **{name: value or None for name, value in asdict(finding.subject).items()},
        "found": finding.found,
        "cost": finding.cost,
        "number": finding.number,
        "measure": finding.measure,
        "threshold": finding.threshold,
        "count": finding.count,
        "begin_ns": finding.begin_ns,
        "end_ns": finding.end_ns,
        "packets": list(finding.packets),
        "filter": finding.filter or None,
        "setting": None if library is None else finding.advice.settings[library],
    }


def advice_row(advice: Advice) -> dict[str, Any]:
    """Return an advice as a JSON object."""
    return {
        "advice": advice.id,
        "rank": advice.rank.value,
        "title": advice.title,
        "what": advice.what,
        "cost": advice.cost,
        "settings": dict(advice.settings),
        "limits": {name: limit.default for name, limit in advice.limits.items()},
        "source": advice.source,
    }
