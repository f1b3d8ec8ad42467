"""Selects the rules to apply, by `--select` and `--ignore`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from conform.registry.rule import Rule
from conform.rules import REGISTRY
from dissector.errors import UsageError


def sort_rules(rules: Iterable[Rule]) -> list[Rule]:
    """Return rules by family and number."""
    return sorted(rules, key=lambda rule: rule.order)


def select_rules(rules: Iterable[Rule], select: Iterable[str], ignore: Iterable[str]) -> list[Rule]:
    """
    Return the rules that are selected and not ignored, in their order.

    Args:
        rules: The available rules.
        select: Rule ids, or letters of families, possibly separated by commas; empty: all.
        ignore: The rules to omit, in the same form; a rule id takes precedence over its family.

    Raises:
        UsageError: The rule is unknown.
    """
    rules = list(rules)
    known = {**REGISTRY, **{rule.id: rule for rule in rules}}
    selected, ignored_names = _parse_names(select, known), _parse_names(ignore, known)
    return [
        rule
        for rule in sort_rules(rules)
        if (not selected or _specificity(rule, selected))
        and not _is_ignored(rule, selected, ignored_names)
    ]


def rule_by_id(name: str, known: Mapping[str, Rule] = REGISTRY) -> Rule:
    """
    Return the rule with an id.

    Raises:
        UsageError: The rule is unknown.
    """
    rule = known.get(name.upper())
    if rule is None:
        raise UsageError(f"unknown rule {name!r}; --list prints the rules")
    return rule


def _parse_names(texts: Iterable[str], known: Mapping[str, Rule]) -> set[str]:
    names = {name.strip().upper() for text in texts for name in text.split(",")} - {""}
    families = {rule[:1] for rule in known}
    for name in sorted(names - families):
        rule_by_id(name, known)
    return names


def _specificity(rule: Rule, names: set[str]) -> int:
    """Return how specific a selection of a rule is: 2 by its id, 1 by its family, 0 for none."""
    return 2 if rule.id in names else int(rule.id[:1] in names)


def _is_ignored(rule: Rule, selected: set[str], ignored_names: set[str]) -> bool:
    specificity = _specificity(rule, ignored_names)
    return specificity > 0 and specificity >= _specificity(rule, selected)
