"""A baseline knows what was found before."""

from __future__ import annotations

from pathlib import Path

import pytest

from conform.baseline import apply, baseline_lines, line_of, read_baseline
from conform.rule import Severity
from dissector.errors import UsageError
from tests.conform.verdicts import verdict


def test_what_is_written_is_known_again(tmp_path: Path) -> None:
    file = tmp_path / "known"
    file.write_text("\n".join(baseline_lines(verdict())) + "\n\n")
    again = verdict()
    assert apply(again, read_baseline(file)) == set()
    assert all(kind.known for kind in again)
    assert again.count(Severity.ERROR) == 0


def test_lines_outlive_numbers_and_versions() -> None:
    kind = list(verdict())[1]
    assert line_of(kind) == "V03|client|shop|Metadata|client_software_name|the name is #"


def test_what_was_found_no_more_is_told() -> None:
    some = verdict()
    lines = {line_of(kind) for kind in some}
    gone = "X01|broker||Fetch||gone"
    known = {min(lines), gone}
    assert apply(some, known) == {gone}
    assert [kind.known for kind in some] == [True, False]


def test_what_can_not_be_read_is_bad_usage(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_baseline(tmp_path / "none")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="is no text"):
        read_baseline(tmp_path / "bytes")
