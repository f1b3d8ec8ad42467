"""Every format writes any verdict."""

from __future__ import annotations

import pytest

from conform.registry.verdict import Verdict
from conform.report.report_formats import verdict_check
from dissector.cli.declared.check_options import FORMATS
from tests.conform.verdicts import verdict


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("it", [verdict(), Verdict([])], ids=["much", "nothing"])
def test_output_has_unix_line_ends(form: str, it: Verdict) -> None:
    lines = list(verdict_check(it, "a\x1b.pcap").lines(form))
    assert lines
    assert not any("\x1b" in line or "\n" in line.strip() for line in lines if form != "html")
