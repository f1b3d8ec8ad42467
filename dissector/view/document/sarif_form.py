"""
A report as SARIF, a format of code scanners and editors.

Source: SARIF 2.1.0, OASIS standard; https://docs.oasis-open.org/sarif/sarif/v2.1.0/.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from dissector.view.document.content import Mood
from dissector.view.text.escape import escaped
from dissector.view.text.value_text import json_text

_LEVELS: Mapping[Mood, str] = {"bad": "error", "warning": "warning", "note": "note"}

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True, slots=True)
class ScanRule:
    """
    What a scan looks for.

    Attributes:
        id: Its name.
        title: It in some words.
        meaning: It in a sentence.
        help: What to do; may be empty.
        mood: Of its results, if all have one.
        rank: What it is sorted by; may be empty.
    """

    id: str
    title: str
    meaning: str
    help: str = ""
    mood: Mood = ""
    rank: str = ""


@dataclass(frozen=True, slots=True)
class ScanPlace:
    """
    Where a result was found.

    Attributes:
        name: The place in words.
        file: The file, or an address; None without one.
        region: First byte and number of bytes in it; None if unknown.
    """

    name: str
    file: str | None = None
    region: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class ScanResult:
    """
    A finding.

    Attributes:
        rule: The id of its rule.
        mood: How bad it is.
        text: It in a sentence.
        places: Where it was found.
        count: How often.
        mark: A text that is the same for the same finding in each run.
        row: It as a JSON object.
        is_known: Whether a baseline has it.
    """

    rule: str
    mood: Mood
    text: str
    places: Sequence[ScanPlace]
    count: int
    mark: str
    row: Mapping[str, Any]
    is_known: bool = False


@dataclass(frozen=True, slots=True)
class Scan:
    """
    A report for scanners.

    Attributes:
        tool: The command: `kafkashark advise`.
        url: A page about what is checked.
        rules: All that was looked for.
        results: What was found.
        faults: Bugs in kafkashark, a line each.
    """

    tool: str
    url: str
    rules: Sequence[ScanRule]
    results: Sequence[ScanResult]
    faults: Sequence[str] = field(default=())


def sarif_lines(scan: Scan) -> Iterator[str]:
    """Yield the file, a single line."""
    index = {rule.id: at for at, rule in enumerate(scan.rules)}
    driver = {
        "name": scan.tool,
        "version": version("kafkashark"),
        "semanticVersion": version("kafkashark"),
        "informationUri": scan.url,
        "rules": [_rule(each) for each in scan.rules],
    }
    notices = [{"level": "error", "message": {"text": escaped(each)}} for each in scan.faults]
    invocation = {"executionSuccessful": not notices, "toolExecutionNotifications": notices}
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "invocations": [invocation],
        "results": [_result(each, index[each.rule]) for each in scan.results],
    }
    yield json_text({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]})


def _rule(rule: ScanRule) -> dict[str, Any]:
    found: dict[str, Any] = {
        "id": rule.id,
        "name": _pascal_case(rule.title),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.meaning},
    }
    if rule.help:
        found["help"] = {"text": rule.help}
    if rule.mood:
        found["defaultConfiguration"] = {"level": _LEVELS[rule.mood]}
    if rule.rank:
        found["properties"] = {"rank": rule.rank, "tags": [rule.rank]}
    return found


def _pascal_case(title: str) -> str:
    """Return a title as an identifier: `TheCrcOfARecordBatchIsRight`."""
    return "".join(word[0].upper() + word[1:] for word in re.findall(r"[A-Za-z0-9]+", title))


def _result(result: ScanResult, index: int) -> dict[str, Any]:
    mark = hashlib.sha256(result.mark.encode("utf-8", "replace")).hexdigest()[:32]
    found: dict[str, Any] = {
        "ruleId": result.rule,
        "ruleIndex": index,
        "level": _LEVELS[result.mood],
        "message": {"text": escaped(result.text)},
        "locations": [_location(each) for each in result.places],
        "occurrenceCount": max(result.count, 1),
        "partialFingerprints": {"kafkashark/v1": mark},
        "properties": dict(result.row),
    }
    if result.is_known:
        found["suppressions"] = [{"kind": "external", "justification": "in the baseline"}]
    return found


def _location(place: ScanPlace) -> dict[str, Any]:
    found: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": escaped(place.name)}]}
    if place.file is None:
        return found
    uri = quote(PurePath(place.file).as_posix())
    found["physicalLocation"] = {"artifactLocation": {"uri": uri}}
    if place.region is not None:
        offset, length = place.region
        found["physicalLocation"]["region"] = {"byteOffset": offset, "byteLength": length}
    return found
