"""
Every rule has scenes that break it and scenes that keep it, judged accordingly.

`verdicts.txt` has what a rule says of each of its scenes: how often it judged and why it did not,
and where it found what. `pytest tests/conform/rules/test_rule_cases.py -n 0 --update-golden` writes
it anew: review the difference before the commit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from conform.registry.rule import REGISTRY
from conform.registry.verdict import Verdict
from tests.conform.scene import BREAKS, KEEPS, RuleCase, broken, capture_rules, findings

HERE = Path(__file__).parent
VERDICTS = HERE / "verdicts.txt"

for file in sorted(HERE.rglob("test_*.py")):
    if file.parent != HERE:
        import_module(f"{__package__}.{file.parent.name}.{file.stem}")


def test_all_cases_are_of_known_rules() -> None:
    assert BREAKS.keys() | KEEPS.keys() <= REGISTRY.keys()


@pytest.mark.thinned(2)
@pytest.mark.parametrize("rule", sorted(rule.id for rule in capture_rules()))
def test_scenes_that_break_and_keep_a_rule(rule: str, request: pytest.FixtureRequest) -> None:
    assert BREAKS.get(rule), f"no scene breaks {rule}"
    assert KEEPS.get(rule), f"no scene keeps {rule}"
    shown = []
    for case, also in by_module(BREAKS[rule]):
        verdict = case().judge()
        found = set(broken(verdict, rule, *also))
        assert found == {rule, *also}, "\n".join((case.__name__, *verdict.kinds))
        shown += verdict_lines(case.__name__, verdict, rule)
    for case, also in by_module(KEEPS[rule]):
        verdict = case().judge()
        assert set(broken(verdict, rule)) == set(also), "\n".join((case.__name__, *verdict.kinds))
        assert verdict.tallies[rule].judged, case.__name__
        shown += verdict_lines(case.__name__, verdict, rule)
    sections = stored_sections()
    if request.config.getoption("--update-golden"):
        sections[rule] = shown
        lines = [line for rule in sorted(sections) for line in (f"== {rule}", *sections[rule])]
        VERDICTS.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert shown == sections.get(rule)


def by_module(cases: list[RuleCase]) -> list[RuleCase]:
    """Return cases in the order of their modules, whichever another test imported first."""
    return sorted(cases, key=lambda each: each[0].__module__)


def verdict_lines(name: str, verdict: Verdict, rule: str) -> Iterator[str]:
    """Yield the counts of a rule in a scene, and its findings."""
    tally = verdict.tallies[rule]
    reasons = "".join(f"; {count}: {why}" for why, count in sorted(tally.unjudged.items()))
    yield f"{name}: {tally.broken} of {tally.judged}{reasons}"
    for each in findings(verdict):
        if each.rule.id == rule:
            yield f"  {each.severity} {each.side} {each.packet} {each.path}: {each.found}"


def stored_sections() -> dict[str, list[str]]:
    """Return the stored lines of each rule."""
    sections: dict[str, list[str]] = {}
    text = VERDICTS.read_text(encoding="utf-8") if VERDICTS.exists() else ""
    for part in re.split(r"^== ", text, flags=re.MULTILINE)[1:]:
        rule, *lines = part.splitlines()
        sections[rule] = lines
    return sections
