"""Baselines of known findings."""

from __future__ import annotations

from pathlib import Path

import pytest

from conform.registry.rank import Severity
from conform.registry.rule import Side
from conform.registry.verdict import Verdict, finding_key
from conform.report.baseline import apply_baseline, baseline_line, baseline_lines, read_baseline
from dissector.errors import UsageError
from tests.conform.verdicts import F03, finding, verdict


def test_written_findings_match_again(tmp_path: Path) -> None:
    file = tmp_path / "known"
    file.write_text("\n".join(baseline_lines(verdict())) + "\n\n")
    second = verdict()
    assert apply_baseline(second, read_baseline(file)) == set()
    assert all(kind.known for kind in second)
    assert second.count(Severity.ERROR) == 0


def test_lines_match_other_numbers_and_versions() -> None:
    kind = list(verdict())[1]
    assert baseline_line(kind) == "V03|client|shop|Metadata|client_software_name|the name is #"


def test_vanished_findings_are_reported() -> None:
    some = verdict()
    lines = {baseline_line(kind) for kind in some}
    gone = "X01|broker||Fetch||gone"
    known = {min(lines), gone}
    assert apply_baseline(some, known) == {gone}
    assert [kind.known for kind in some] == [True, False]


def test_an_unreadable_baseline_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_baseline(tmp_path / "none")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is not text"):
        read_baseline(tmp_path / "bytes")


def test_another_version_of_the_api_is_not_in_the_baseline() -> None:
    first, later = Verdict([F03]), Verdict([F03])
    for out, versions in ((first, (1,)), (later, (1, 2))):
        for version in versions:
            found = f"version {version} is asked"
            kind = out.kind(finding_key(F03, Side.CLIENT, "", "Fetch", "", found), version)
            assert kind is not None
            repeated = finding(
                F03, Side.CLIENT, found, Severity.ERROR, api="Fetch", version=version
            )
            kind.findings.append(repeated)
    lines = set(baseline_lines(first))
    assert "F03|client||Fetch v1||version # is asked" in lines
    assert apply_baseline(first, lines) <= lines
    assert not first.fails
    apply_baseline(later, lines)
    assert later.fails


@pytest.mark.parametrize("text", ["{}", "[]\n", "", "# a comment", "F03|nobody||Fetch||x", "F03"])
def test_a_file_of_another_format_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "other").write_text(text)
    with pytest.raises(UsageError, match="baseline"):
        read_baseline(tmp_path / "other")


def test_an_empty_baseline_is_valid(tmp_path: Path) -> None:
    (tmp_path / "none").write_text("\n".join(baseline_lines(Verdict([F03]))))
    assert read_baseline(tmp_path / "none") == set()
