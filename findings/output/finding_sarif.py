"""
A report of findings as SARIF, a format of code scanners and editors.

Source: SARIF 2.1.0, OASIS standard; https://docs.oasis-open.org/sarif/sarif/v2.1.0/.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from dissector.view.text.escape import escaped
from dissector.view.text.value_text import json_text
from findings.output.finding_rows import finding_row
from findings.output.finding_texts import where, who
from findings.registry.finding_report import FindingReport
from findings.registry.ranked_finding import Rank, RankedFinding
from findings.sources.finding_source import SOURCES

_LEVELS = {
    Rank.BREAKS: "error",
    Rank.COSTS: "warning",
    Rank.DIFFERS: "warning",
    Rank.INFORMS: "note",
}


def finding_sarif(report: FindingReport, subject: str) -> Iterator[str]:
    """Yield the file, a single line."""
    rules = [
        {
            "id": each.name,
            "shortDescription": {"text": each.title},
            "fullDescription": {"text": each.meaning},
        }
        for each in SOURCES.values()
    ]
    driver = {
        "name": "kafkashark findings",
        "version": version("kafkashark"),
        "informationUri": "https://kafka.apache.org/documentation/",
        "rules": rules,
    }
    index = {name: at for at, name in enumerate(SOURCES)}
    begin_ns = report.headline.begin_ns
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": not report.faults}],
        "results": [_result(each, index[each.source], subject, begin_ns) for each in report],
    }
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    yield json_text({"$schema": schema, "version": "2.1.0", "runs": [run]})


def _result(finding: RankedFinding, index: int, subject: str, begin_ns: int) -> dict[str, Any]:
    text = "; ".join(filter(None, (finding.title, finding.detail, who(finding))))
    place = where(finding, begin_ns) or subject
    return {
        "ruleId": finding.source,
        "ruleIndex": index,
        "level": _LEVELS[finding.rank],
        "message": {"text": escaped(text)},
        "locations": [
            {
                "logicalLocations": [{"fullyQualifiedName": escaped(place)}],
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(PurePath(subject).as_posix())}
                },
            }
        ],
        "occurrenceCount": max(finding.count, 1),
        "partialFingerprints": {
            "kafkashark/v1": hashlib.sha256(finding.id.encode("utf-8", "replace")).hexdigest()[:32]
        },
        "properties": finding_row(finding),
    }
