"""A verdict as SARIF."""

from __future__ import annotations

import gzip
import json
from importlib.metadata import version
from pathlib import Path

from conform.registry.rank import Severity
from conform.registry.rule import Side
from conform.registry.verdict import Verdict
from conform.report.report_formats import verdict_check
from tests.conform.mutations import judged_file
from tests.conform.verdicts import F03, add, finding, verdict, verdict_of_one_cause

CAPTURES = Path(__file__).parents[3] / "captures"


def test_sarif() -> None:
    known = verdict()
    list(known)[1].known = True
    log = json.loads("".join(verdict_check(known, "a.pcap").lines("sarif")))
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


def test_standard_input_is_not_an_artifact() -> None:
    piped = verdict()
    kind = next(iter(piped))
    first = kind.first
    kind.findings[:] = [type(first)(first.rule, first.severity, first.side, "x", capture="-")]
    log = json.loads("".join(verdict_check(piped, "-").lines("sarif")))
    (location,) = log["runs"][0]["results"][0]["locations"]
    assert "physicalLocation" not in location
    assert location["logicalLocations"] == [{"fullyQualifiedName": "-"}]


def test_the_driver_and_its_rules_have_names() -> None:
    log = json.loads("".join(verdict_check(verdict(), "a.pcap").lines("sarif")))
    driver = log["runs"][0]["tool"]["driver"]
    assert driver["version"] == version("kafkashark")
    assert driver["informationUri"].startswith("https://")
    names = [rule["name"] for rule in driver["rules"]]
    assert names[0] == "ResponsesOutOfOrder"
    assert all(name.isalnum() for name in names)
    assert driver["rules"][0]["properties"]["rank"] == "breaks clients"


def test_regions_are_bytes_of_the_capture() -> None:
    path = CAPTURES / "librdkafka-acks.pcap"
    log = json.loads("".join(verdict_check(judged_file(path), str(path)).lines("sarif")))
    data, seen = path.read_bytes(), 0
    for result in log["runs"][0]["results"]:
        for location in result["locations"]:
            region = location["physicalLocation"]["region"]
            at, size = region["byteOffset"], region["byteLength"]
            assert 0 < at < at + size <= len(data)
            row = result["properties"]
            if location is result["locations"][0] and row["span"] is None:
                # A whole message, without its size prefix, with its correlation id.
                assert int.from_bytes(data[at - 4 : at], "big") == size
                head = 4 if row["message"] == "request" else 0
                found = int.from_bytes(data[at + head : at + head + 4], "big")
                assert found == row["correlation_id"]
                seen += 1
    assert seen


def test_a_compressed_capture_has_no_regions(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap.gz"
    path.write_bytes(gzip.compress((CAPTURES / "librdkafka-acks.pcap").read_bytes()))
    log = json.loads("".join(verdict_check(judged_file(path), str(path)).lines("sarif")))
    places = [place for result in log["runs"][0]["results"] for place in result["locations"]]
    assert places
    assert not any("region" in place["physicalLocation"] for place in places)


def test_a_live_broker_is_a_location() -> None:
    live = Verdict([F03])
    values = {"connection": None, "packet": None, "capture": "", "span": (4, 6)}
    add(live, finding(F03, Side.BROKER, "x", Severity.ERROR, **values))
    log = json.loads("".join(verdict_check(live, "[fd00::1]:9092").lines("sarif")))
    (place,) = log["runs"][0]["results"][0]["locations"]
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "%5Bfd00%3A%3A1%5D%3A9092"},
        "region": {"byteOffset": 4, "byteLength": 2},
    }


def test_findings_of_one_cause_are_one_result() -> None:
    log = json.loads("".join(verdict_check(verdict_of_one_cause(), "it").lines("sarif")))
    (result,) = log["runs"][0]["results"]
    assert result["occurrenceCount"] == 3
    assert "with the same cause, 2 times more: V03 Metadata (2)" in result["message"]["text"]
