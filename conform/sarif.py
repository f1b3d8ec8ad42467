"""
A verdict as SARIF, which code scanners and editors read.

Source: SARIF 2.1.0, OASIS standard; https://docs.oasis-open.org/sarif/sarif/v2.1.0/.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from conform.baseline import line_of
from conform.ndjson import finding_row
from conform.rule import Rule
from conform.text import place_text, who_text
from conform.verdict import Finding, Kind, Verdict
from dissector.view.escape import escaped
from dissector.view.values import json_text

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif_lines(verdict: Verdict, subject: str) -> Iterator[str]:
    """Yield the file, which is one line."""
    places = {rule.id: at for at, rule in enumerate(verdict.rules)}
    results = [_result(kind, places[kind.first.rule.id], subject) for kind in verdict]
    driver = {"name": "kafkashark", "rules": [_rule(rule) for rule in verdict.rules]}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    yield json_text({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.asks},
        "help": {"text": f"{rule.asks} Breaks it: {rule.example}. Source: {rule.source}"},
        "defaultConfiguration": {"level": rule.severity.value},
    }


def _result(kind: Kind, place: int, subject: str) -> dict[str, Any]:
    first = kind.first
    text = escaped(f"{first.found} ({who_text(first)})")
    result: dict[str, Any] = {
        "ruleId": first.rule.id,
        "ruleIndex": place,
        "level": first.severity.value,
        "message": {"text": text},
        "locations": [_location(finding, subject) for finding in kind.findings],
        "occurrenceCount": kind.count,
        "partialFingerprints": {
            "kafkashark/v1": hashlib.sha256(line_of(kind).encode()).hexdigest()[:32]
        },
        "properties": finding_row(kind, first),
    }
    if kind.known:
        result["suppressions"] = [{"kind": "external", "justification": "in the baseline"}]
    return result


def _location(finding: Finding, subject: str) -> dict[str, Any]:
    location: dict[str, Any] = {
        "logicalLocations": [{"fullyQualifiedName": place_text(finding) or escaped(subject)}]
    }
    if finding.capture and finding.capture != "-":
        uri = quote(PurePath(finding.capture).as_posix())
        location["physicalLocation"] = {"artifactLocation": {"uri": uri}}
    return location
