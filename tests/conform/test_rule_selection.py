"""Selection of rules."""

from __future__ import annotations

import pytest

from conform.rule_selection import rule_by_id, select_rules, sort_rules
from conform.rules import REGISTRY
from dissector.errors import UsageError

RULES = REGISTRY.values()


def _ids(select: list[str], ignore: list[str]) -> list[str]:
    return [rule.id for rule in select_rules(RULES, select, ignore)]


def test_all_rules_in_order() -> None:
    ids = _ids([], [])
    assert len(ids) == len(REGISTRY)
    assert ids.index("F03") < ids.index("F10")
    assert [rule.id for rule in sort_rules(reversed(list(RULES)))] == ids


def test_families_and_rules() -> None:
    assert _ids(["f03,V02", "q"], []) == ["F03", "Q01", "Q02", "V02"]
    assert _ids(["F03", "V"], ["V02, V03"]) == ["F03", "V01", "V04", "V05", "V06", "V07"]


def test_a_rule_takes_precedence_over_its_family() -> None:
    assert _ids(["F03"], ["F"]) == ["F03"]
    assert _ids(["F"], ["F"]) == []
    assert _ids(["F03"], ["F03"]) == []


def test_an_unknown_rule_is_a_usage_error() -> None:
    for select, ignore in ((["F99"], []), ([], ["nonsense"])):
        with pytest.raises(UsageError, match="unknown rule"):
            select_rules(RULES, select, ignore)
    with pytest.raises(UsageError, match="--list"):
        rule_by_id("F99")
    assert rule_by_id("f03") is REGISTRY["F03"]
