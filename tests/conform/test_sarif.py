"""A verdict as SARIF."""

from __future__ import annotations

import json

from conform.sarif import sarif_lines
from tests.conform.verdicts import verdict


def test_sarif() -> None:
    known = verdict()
    list(known)[1].known = True
    log = json.loads("".join(sarif_lines(known, "a.pcap")))
    (run,) = log["runs"]
    assert log["version"] == "2.1.0"
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["F03", "F15", "V03"]
    assert [rule["defaultConfiguration"]["level"] for rule in rules] == ["error", "note", "error"]
    order, name = run["results"]
    assert (order["ruleId"], rules[order["ruleIndex"]]["id"]) == ("F03", "F03")
    assert (order["level"], order["occurrenceCount"]) == ("error", 2)
    assert len(order["locations"]) == 2
    place = order["locations"][0]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "some%20dir/a.pcap"
    assert "packet 8" in place["logicalLocations"][0]["fullyQualifiedName"]
    assert "suppressions" not in order
    assert name["suppressions"][0]["kind"] == "external"
    assert name["message"]["text"].startswith("the name is '<b>\\x1b&'")
    assert name["partialFingerprints"] != order["partialFingerprints"]


def test_standard_input_is_no_artifact() -> None:
    piped = verdict()
    kind = next(iter(piped))
    first = kind.first
    kind.findings[:] = [type(first)(first.rule, first.severity, first.side, "x", capture="-")]
    log = json.loads("".join(sarif_lines(piped, "-")))
    (location,) = log["runs"][0]["results"][0]["locations"]
    assert "physicalLocation" not in location
    assert location["logicalLocations"] == [{"fullyQualifiedName": "-"}]
