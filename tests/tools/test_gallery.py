"""The gallery of brokers: its tables of verdicts, and the page."""

from __future__ import annotations

import re

import conform.probe.probes  # noqa: F401 (adds its rules to the registry)
from conform.registry.rule import REGISTRY
from tools import gallery

LIVE = {each.id for each in REGISTRY.values() if each.on == "live"}
CELLS = {"kept", "error", "warning", "note", "not judged", "ends it"}


def test_the_worst_finding_of_a_rule_is_its_cell_and_the_first_is_shown() -> None:
    rows = [
        {"section": "summary"},
        {"section": "finding", "rule": "P01", "severity": "note", "found": "at 127.0.0.1:31766"},
        {"section": "finding", "rule": "P01", "severity": "error", "found": "worse"},
        *(
            {"section": "rule", "rule": rule, "judged": judged}
            for rule, judged in (("P01", 2), ("P02", 1), ("P16", 0))
        ),
    ]
    verdict = gallery.verdict_in(rows, frozenset({"P05"}))
    assert verdict.cells == {"P01": "error", "P02": "kept", "P16": "not judged", "P05": "ends it"}
    assert verdict.found == {"P01": "at ..."}
    text = gallery.gallery({"a|b": verdict, "other": gallery.Verdict({}, {})})
    assert f"{len(LIVE)} rules, 2 brokers." in text
    assert "| P01 " in text
    assert "## What a|b does" in text


def test_the_page_has_a_cell_for_each_broker_and_every_live_rule() -> None:
    text = gallery.PAGE.read_text(encoding="utf-8")
    listed = text.split(gallery.BEGIN)[1].split(gallery.END)[0]
    totals, table, *findings = listed.split("\n## ")
    names = [each.name for each in gallery.BROKERS]
    summary = re.findall(r"^\| ([^|]+) \|([ \d|]+)$", totals, re.MULTILINE)
    assert [name for name, _ in summary] == names
    rows = re.findall(r"^\| ([A-Z]\d\d) .*? \| (.*) \|$", table, re.MULTILINE)
    for rule, cells in rows:
        found = cells.split(" | ")[-len(names) :]
        assert set(found) <= CELLS, rule
        assert len(found) == len(names)
    kept = re.findall(r"\b[A-Z]\d\d\b", table.split("\nAll keep ")[1])
    assert {rule for rule, _ in rows} | set(kept) == LIVE
    for _, numbers in summary:
        assert sum(map(int, re.findall(r"\d+", numbers))) == len(LIVE)
    assert len(findings) >= 2
    assert not re.search(r"\d+\.\d+\.\d+\.\d+:\d+", listed), "an address differs each time"
