"""A section of a report that fails, or reaches its budget, leaves the others whole."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from conform.judge import Judge
from dissector.summary.statistics import Statistics
from findings.gather.guarded_sections import SectionBudget, Sections
from report.gather.extreme_exchanges import ExtremeExchanges
from report.gather.time_bins import TimeBins
from report.page import capture_document
from tests.corpus import FOLDER
from tests.report.pages import page_of, run
from timeline.timeline import Timeline

DEMO = FOLDER / "demo.pcap"


def fails(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("what may be secret")


FAILURES = {
    "time": (TimeBins, "add", fails),
    "totals": (Statistics, "add", fails),
    "exchanges": (ExtremeExchanges, "add", fails),
    "events": (Timeline, "advance", fails),
    "conformance": (Judge, "judge_window", fails),
    "use": (capture_document, "software_table", fails),
    "upgrade": (capture_document, "upgrade_tables", fails),
}
"""Section -> what fails."""

TABLES = {
    "totals": "apis",
    "exchanges": "slowest",
    "events": "events-group",
    "conformance": "findings",
    "use": "users",
    "upgrade": "upgrade-clients",
}
"""Section -> a table of it."""


@pytest.mark.thinned(4)
@pytest.mark.parametrize("section", FAILURES)
def test_a_failing_section_leaves_the_others_whole(
    section: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole = page_of(tmp_path, DEMO, "--to", "4.0")
    monkeypatch.setattr(*FAILURES[section])
    (tmp_path / "failed").mkdir()
    page = page_of(tmp_path / "failed", DEMO, "--to", "4.0")
    assert "Incomplete because of a bug in kafkashark: ZeroDivisionError in" in page.text
    assert "secret" not in page.text
    assert f"report: section {section}: ZeroDivisionError in" in capsys.readouterr().err
    needing = {"totals", "use", "upgrade"} if section == "totals" else {section}
    for other, table in TABLES.items():
        if other not in needing:
            assert page.tables.get(table) == whole.tables.get(table), other


def test_an_unreadable_file_is_no_bug_of_a_section(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.pcap").write_bytes(b"no capture at all")
    assert run(tmp_path / "a.pcap", "-o", tmp_path / "out.html") == 2
    assert "bug" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "budget", [SectionBudget(0, 0), SectionBudget(peak_bytes=-1)], ids=["time", "memory"]
)
def test_a_section_beyond_its_budget_is_named(budget: SectionBudget) -> None:
    fed: list[int] = []
    sections = Sections(budget)
    for number in range(3):
        sections.feed("events", partial(fed.append, number))
    assert fed == [0]
    assert sections.is_stopped("events")
    assert sections.notes["events"].startswith("Incomplete: this section reached its budget of ")
    assert not sections.bugs
    assert sections.run("events", lambda: "its first part", "") == "its first part"


@pytest.mark.long
def test_a_report_says_which_section_reached_its_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SectionBudget.__init__, "__defaults__", (60.0, 4.0, -1))
    page = page_of(tmp_path, DEMO)
    assert page.text.count("reached its budget of -1 MiB of memory") >= 6
