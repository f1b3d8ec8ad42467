"""The Python interface `kafkashark.conform` gives the verdicts of the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conform.public import conform as conform_of_the_room
from dissector.cli import main
from kafkashark import CaptureError, Severity, UsageError, Verdict, conform, open_capture

CAPTURES = Path(__file__).parents[2] / "captures"
MOCK = CAPTURES / "librdkafka-acks.pcap"
"""Recorded at the mock cluster, which breaks rules."""
GOOD = CAPTURES / "kafka4-java-clients.pcap"
TLS = CAPTURES / "kafka4-aiokafka-tls.pcap"
KEYLOG = TLS.with_suffix(".keylog")


def _counts(verdict: Verdict) -> list[tuple[str, int]]:
    return [(kind.first.rule.id, kind.count) for kind in verdict]


def test_findings_equal_those_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert conform is conform_of_the_room
    verdict = conform(MOCK)
    assert not verdict.passed
    assert main(["conform", str(MOCK), "-T", "ndjson"]) == 1
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert rows[0]["rules_judged"] == verdict.rules_judged
    packets = {(row["rule"], row["packet"]) for row in rows if row["section"] == "finding"}
    found = [finding for kind in verdict for finding in kind.findings]
    assert found
    assert {(finding.rule.id, finding.packet) for finding in found} == packets
    main(["conform", str(MOCK)])
    assert capsys.readouterr().out.splitlines()[-1] == f"{MOCK}: {verdict}"


def test_tls_is_read_with_a_key_log() -> None:
    assert not conform(TLS).passed
    verdict = conform(TLS, keylogs=[KEYLOG])
    assert verdict.passed
    assert verdict.rules_judged == conform(open_capture(TLS, keylogs=[KEYLOG])).rules_judged > 20


def test_findings_have_positions() -> None:
    (kind,) = conform(MOCK, select="F05")
    finding = kind.first
    assert (finding.rule.id, finding.severity, finding.side) == ("F05", "error", "broker")
    assert finding.packet
    assert finding.found


@pytest.mark.parametrize("rules", ["F05,C", ["F05", "C"], ("f05, c",)])
def test_rules_are_selected_and_ignored(rules: Any) -> None:
    verdict = conform(MOCK, select=rules)
    assert {rule.id[0] for rule in verdict.rules} == {"F", "C"}
    assert len(verdict.rules) == 10
    assert not verdict.passed
    assert conform(MOCK, select=rules, ignore="F05").passed


def test_an_open_capture_is_judged_like_its_files() -> None:
    assert _counts(conform(open_capture(MOCK))) == _counts(conform(MOCK))
    assert conform(open_capture(GOOD), ports=[]).passed
    assert conform(GOOD, TLS, select="F").captures == [str(GOOD), str(TLS)]


def test_bytes_file_objects_and_lists_are_judged() -> None:
    expected = _counts(conform(MOCK))
    with MOCK.open("rb") as file:
        assert _counts(conform(file)) == expected
    assert _counts(conform(MOCK.read_bytes())) == expected
    assert _counts(conform([MOCK])) == expected


def test_a_filtered_capture_is_not_judged() -> None:
    with pytest.raises(UsageError, match="without a filter"):
        conform(open_capture(MOCK, filter="api == Produce"))


def test_too_few_judged_rules_do_not_pass() -> None:
    verdict = conform(TLS)
    assert not verdict.fails
    assert not verdict.passed
    assert conform(GOOD, select="F").passed
    assert not conform(GOOD, select="F", require_judged=100).passed
    assert not conform(MOCK, ports=[1]).passed


def test_the_failing_severity_can_be_chosen() -> None:
    firsts = [kind.first for kind in conform(MOCK)]
    warned = {each.rule.id for each in firsts if each.severity == "warning"}
    warned -= {each.rule.id for each in firsts if each.severity == "error"}
    assert warned
    assert conform(MOCK, select=warned).passed
    assert not conform(MOCK, select=warned, fail_on="warning").passed
    assert not conform(MOCK, select=warned, fail_on=Severity.WARNING).passed


def test_a_baseline_of_the_command_is_accepted(tmp_path: Path) -> None:
    file = tmp_path / "known"
    assert main(["conform", str(MOCK), "--write-baseline", str(file)]) == 0
    verdict = conform(MOCK, baseline=file)
    assert verdict.passed
    assert "in the baseline" in str(verdict)


def test_damage_of_the_file_is_a_problem(tmp_path: Path) -> None:
    file = tmp_path / "cut.pcap"
    file.write_bytes(GOOD.read_bytes()[:-10])
    (problem,) = conform(file, select="F").problems
    assert problem.startswith(f"{file}: ")
    assert not conform(GOOD, select="F").problems


@pytest.mark.parametrize(
    ("captures", "options", "what"),
    [
        ((), {}, "conform needs a capture"),
        ((GOOD,), {"select": "F99"}, "unknown rule 'F99'"),
        ((GOOD,), {"fail_on": "bad"}, "fail_on takes error, warning, note, not 'bad'"),
        ((GOOD,), {"baseline": GOOD / "none"}, "none: "),
        ((open_capture(GOOD),), {"ports": [9092]}, "a Capture has its own ports"),
        ((open_capture(GOOD),), {"keylogs": ["a"]}, "a Capture has its own keylogs"),
        ((TLS,), {"keylogs": KEYLOG}, "keylogs takes several names"),
        ((open_capture(GOOD), GOOD), {}, "conform expects one Capture"),
        ((7,), {}, "not int"),
    ],
)
def test_unjudgeable_captures_are_refused(captures: Any, options: Any, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        conform(*captures, **options)


def test_a_file_other_than_a_capture_is_refused() -> None:
    with pytest.raises(CaptureError):
        conform(Path(__file__))
