"""Every rule has scenes that break it and scenes that keep it, judged accordingly."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from conform.registry.rule import REGISTRY
from tests.conform.scene import BREAKS, KEEPS, Case, broken, capture_rules

for file in sorted(Path(__file__).parent.rglob("test_*.py")):
    if file.parent != Path(__file__).parent:
        import_module(f"{__package__}.{file.parent.name}.{file.stem}")

BREAKING = [
    pytest.param(rule, case, also, id=f"{rule}-{case.__name__}")
    for rule in BREAKS
    for case, also in BREAKS[rule]
]
KEEPING = [
    pytest.param(rule, case, also, id=f"{rule}-{case.__name__}")
    for rule in KEEPS
    for case, also in KEEPS[rule]
]


@pytest.mark.parametrize("rule", sorted(rule.id for rule in capture_rules()))
def test_each_rule_has_cases(rule: str) -> None:
    assert rule in BREAKS, f"no scene breaks {rule}"
    assert rule in KEEPS, f"no scene keeps {rule}"


def test_all_cases_are_of_known_rules() -> None:
    assert BREAKS.keys() | KEEPS.keys() <= REGISTRY.keys()


@pytest.mark.parametrize(("rule", "case", "also"), BREAKING)
def test_breaking_scene_is_found(rule: str, case: Case, also: tuple[str, ...]) -> None:
    verdict = case().judge()
    assert set(broken(verdict, rule, *also)) == {rule, *also}, "\n".join(verdict.kinds)


@pytest.mark.parametrize(("rule", "case", "also"), KEEPING)
def test_keeping_scene_has_no_finding(rule: str, case: Case, also: tuple[str, ...]) -> None:
    verdict = case().judge()
    assert set(broken(verdict, rule)) == set(also), "\n".join(verdict.kinds)
    assert verdict.tallies[rule].judged
