"""
A report of advice as SARIF, a format of code scanners and editors.

Source: SARIF 2.1.0, OASIS standard; https://docs.oasis-open.org/sarif/sarif/v2.1.0/.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from advise.registry.advice import Advice, Rank
from advise.registry.advice_report import AdviceFinding, AdviceReport
from advise.report.advice_ndjson import finding_row
from advise.report.advice_text import packets_text
from dissector.view.text.escape import escaped
from dissector.view.text.value_text import json_text

_LEVELS = {Rank.COSTLY: "error", Rank.RISKY: "warning", Rank.INFORMS: "note"}


def advice_sarif(report: AdviceReport, subject: str) -> Iterator[str]:
    """Yield the file, a single line."""
    index = {advice.id: at for at, advice in enumerate(report.advices)}
    driver = {
        "name": "kafkashark advise",
        "version": version("kafkashark"),
        "informationUri": "https://kafka.apache.org/documentation/",
        "rules": [_rule(advice) for advice in report.advices],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [{"executionSuccessful": True}],
        "results": [_result(each, index[each.advice.id], subject) for each in report],
    }
    schema = "https://json.schemastore.org/sarif-2.1.0.json"
    yield json_text({"$schema": schema, "version": "2.1.0", "runs": [run]})


def _rule(advice: Advice) -> dict[str, Any]:
    settings = "; ".join(f"{library}: {text}" for library, text in advice.settings.items())
    return {
        "id": advice.id,
        "name": "".join(word.capitalize() for word in advice.id.split("-")),
        "shortDescription": {"text": advice.title},
        "fullDescription": {"text": f"{advice.what} {advice.cost}"},
        "help": {"text": f"{settings}. Source: {advice.source}"},
        "defaultConfiguration": {"level": _LEVELS[advice.rank]},
        "properties": {"rank": advice.rank.value, "tags": [advice.rank.value]},
    }


def _result(finding: AdviceFinding, index: int, subject: str) -> dict[str, Any]:
    place = f"{finding.advice.id} {finding.subject}"
    return {
        "ruleId": finding.advice.id,
        "ruleIndex": index,
        "level": _LEVELS[finding.rank],
        "message": {"text": escaped(f"{finding.subject}: {finding.found}. {finding.cost}")},
        "locations": [
            {
                "logicalLocations": [{"fullyQualifiedName": escaped(packets_text(finding))}],
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(PurePath(subject).as_posix())}
                },
            }
        ],
        "occurrenceCount": max(finding.count, 1),
        "partialFingerprints": {
            "kafkashark/v1": hashlib.sha256(place.encode("utf-8", "replace")).hexdigest()[:32]
        },
        "properties": finding_row(finding),
    }
