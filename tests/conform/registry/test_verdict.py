"""Equal findings are counted, and kept in bounded number."""

from __future__ import annotations

import pytest

from conform.registry import verdict as verdicts
from conform.registry.rank import Severity
from conform.registry.rule import Side
from conform.registry.verdict import MAX_FINDINGS_PER_KIND, Verdict, finding_key
from tests.conform.verdicts import F03, F15, V03, add, finding, verdict


def test_equal_findings_are_grouped() -> None:
    kinds = list(verdict())
    assert [(kind.first.rule.id, kind.count) for kind in kinds] == [("F03", 2), ("V03", 1)]
    assert [each.packet for each in kinds[0].findings] == [8, 13]


def test_keys_omit_variable_parts() -> None:
    key = finding_key(F03, Side.BROKER, "", "Fetch", "responses[3].partitions[12]", "id 7 of 'x'")
    assert key == "F03|broker||Fetch|responses[].partitions[]|id # of #"
    uuid = "5f7d1f1e-9d1c-4f43-8d6b-0c1a2b3c4d5e"
    assert finding_key(F03, Side.CLIENT, "a 1", "", "", uuid) == "F03|client|a 1|||#"


def test_only_the_first_findings_are_kept_in_full() -> None:
    out = Verdict([F15])
    for number in range(MAX_FINDINGS_PER_KIND + 4):
        add(out, finding(F15, Side.CLIENT, f"request {number}", Severity.NOTE))
    (kind,) = out
    assert kind.count == MAX_FINDINGS_PER_KIND + 4
    assert [each.found for each in kind.findings] == [
        f"request {n}" for n in range(MAX_FINDINGS_PER_KIND)
    ]


def test_number_of_kinds_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "MAX_KINDS", 2)
    out = Verdict([V03])
    for letter in "abca":
        add(out, finding(V03, Side.CLIENT, f"letter {letter}", Severity.ERROR))
    assert len(out.kinds) == 2
    assert out.uncounted == 1
    assert out.count(Severity.ERROR) == 3


def test_baseline_findings_are_not_counted() -> None:
    out = verdict()
    assert out.count(Severity.ERROR) == 2
    next(iter(out)).known = True
    assert out.count(Severity.ERROR) == 0
    assert out.count(Severity.WARNING) == 1
