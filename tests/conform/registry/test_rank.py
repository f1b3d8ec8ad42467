"""Ranks: some errors break clients, and nothing else does."""

from __future__ import annotations

from conform.registry.rank import ERROR_CODE_RULES, Rank, Severity, rank_of
from conform.registry.rule import Side
from conform.registry.verdict import Finding
from tests.conform.probe.scripts import LIVE
from tests.conform.verdicts import F03, V03


def test_tolerated_violations_do_not_break_clients() -> None:
    assert rank_of("X99", Severity.ERROR) is Rank.BREAKS
    assert rank_of("X99", Severity.WARNING) is Rank.DIFFERS
    assert rank_of("X99", Severity.NOTE) is Rank.DIFFERS


def test_lost_records_rank_above_error_codes() -> None:
    assert {LIVE[rule].rank for rule in ("P18", "P24", "P26")} == {Rank.BREAKS}
    assert {LIVE[rule].rank for rule in ("P12", "P17", "P40", "P42")} == {Rank.DIFFERS}


def test_the_listed_rules_exist() -> None:
    assert LIVE.keys() >= ERROR_CODE_RULES


def test_a_finding_may_have_another_severity_than_its_rule() -> None:
    milder = Finding(F03, Severity.NOTE, Side.BROKER, "x")
    assert milder.rank is Rank.DIFFERS
    graver = Finding(V03, Severity.ERROR, Side.BROKER, "x", cause="the broker does not answer")
    assert graver.rank is Rank.BREAKS
