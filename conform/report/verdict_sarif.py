"""
A verdict as SARIF, a format of code scanners and editors.

Source: SARIF 2.1.0, OASIS standard; https://docs.oasis-open.org/sarif/sarif/v2.1.0/.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from conform.registry.rule import Rule
from conform.registry.verdict import Cause, Finding, Verdict
from conform.report.baseline import baseline_line
from conform.report.byte_regions import Region, regions_of
from conform.report.verdict_ndjson import finding_row
from conform.report.verdict_text import location_text, other_findings_text, side_text
from dissector.view.text.escape import escaped
from dissector.view.text.value_text import json_text

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif_lines(verdict: Verdict, subject: str) -> Iterator[str]:
    """Yield the file, a single line."""
    rule_index = {rule.id: at for at, rule in enumerate(verdict.rules)}
    regions = regions_of(verdict)
    results = [
        _result(cause, rule_index[cause.kind.first.rule.id], subject, regions)
        for cause in verdict.causes()
    ]
    driver = {
        "name": "kafkashark",
        "version": version("kafkashark"),
        "semanticVersion": version("kafkashark"),
        "informationUri": "https://kafka.apache.org/protocol.html",
        "rules": [_rule(rule) for rule in verdict.rules],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(verdict)],
        "results": results,
    }
    yield json_text({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]})


def _invocation(verdict: Verdict) -> dict[str, Any]:
    """Return the SARIF invocation: whether it was successful, and the bugs in kafkashark."""
    faults = [
        {"level": "error", "message": {"text": escaped(f"{fault} ({fault.where})")}}
        for fault in verdict.faults.values()
    ]
    return {"executionSuccessful": not faults, "toolExecutionNotifications": faults}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": _pascal_case(rule.title),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.asks},
        "help": {"text": f"{rule.asks} Violation: {rule.example}. Source: {rule.source}"},
        "defaultConfiguration": {"level": rule.severity.value},
        "properties": {"rank": rule.rank.value, "tags": [rule.rank.value]},
    }


def _pascal_case(text: str) -> str:
    """Return a title as an identifier: `TheCrcOfARecordBatchIsRight`."""
    return "".join(word[0].upper() + word[1:] for word in re.findall(r"[A-Za-z0-9]+", text))


def _result(
    cause: Cause, index: int, subject: str, regions: Mapping[Finding, Region]
) -> dict[str, Any]:
    kind = cause.kind
    first = kind.first
    also = f"; with the same cause, {other_findings_text(cause)}" if cause.others else ""
    text = escaped(f"{first.found} ({side_text(first)}){also}")
    result: dict[str, Any] = {
        "ruleId": first.rule.id,
        "ruleIndex": index,
        "level": first.severity.value,
        "message": {"text": text},
        "locations": [
            _location(finding, subject, regions.get(finding)) for finding in kind.findings
        ],
        "occurrenceCount": cause.count,
        "partialFingerprints": {
            "kafkashark/v1": hashlib.sha256(baseline_line(kind).encode()).hexdigest()[:32]
        },
        "properties": finding_row(kind, first),
    }
    if kind.known:
        result["suppressions"] = [{"kind": "external", "justification": "in the baseline"}]
    return result


def _location(finding: Finding, subject: str, region: Region | None) -> dict[str, Any]:
    location: dict[str, Any] = {
        "logicalLocations": [{"fullyQualifiedName": location_text(finding) or escaped(subject)}]
    }
    physical: dict[str, Any] = {}
    if finding.capture and finding.capture != "-":
        physical["artifactLocation"] = {"uri": quote(PurePath(finding.capture).as_posix())}
        if region is not None:
            physical["region"] = {"byteOffset": region[0], "byteLength": region[1]}
    elif finding.connection is None and finding.broker:
        # Readers require a file, so use the broker's address; bytes are offsets in the response.
        physical["artifactLocation"] = {"uri": quote(finding.broker, safe="")}
        if finding.span is not None:
            start, end = finding.span
            physical["region"] = {"byteOffset": start, "byteLength": end - start}
    if physical:
        location["physicalLocation"] = physical
    return location
