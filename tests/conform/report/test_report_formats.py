"""Every format writes any verdict."""

from __future__ import annotations

import pytest

from conform.registry.verdict import Verdict
from conform.report.report_formats import FORMATTERS
from dissector.cli.declared.check_options import FORMATS
from tests.conform.verdicts import verdict


def test_the_command_offers_all_formats() -> None:
    assert tuple(FORMATTERS) == FORMATS


@pytest.mark.parametrize("form", FORMATTERS)
@pytest.mark.parametrize("it", [verdict(), Verdict([])], ids=["much", "nothing"])
def test_output_has_unix_line_ends(form: str, it: Verdict) -> None:
    lines = list(FORMATTERS[form](it, "a\x1b.pcap"))
    assert lines
    assert not any("\x1b" in line or "\n" in line.strip() for line in lines if form != "html")
