"""The registry of rules."""

from __future__ import annotations

import re

import pytest

import conform.probe.probes  # noqa: F401 (puts its rules into the registry)
from conform.registry.rank import Severity
from conform.registry.rule import Rule, rule
from conform.rule_selection import sort_rules
from conform.rules import REGISTRY
from dissector.protocol.apis import NAMES

# Sorted: the registry has them in the order of imports, which differs between workers.
RULES = sort_rules(REGISTRY.values())


@pytest.mark.parametrize("it", RULES, ids=lambda it: it.id)
def test_every_rule_is_described(it: Rule) -> None:
    assert re.fullmatch(r"[A-Z]\d\d", it.id)
    assert it.title[0].isupper() or it.title.startswith("zstd")
    assert not it.title.endswith(".")
    assert it.asks.endswith((".", "?")), it.asks
    assert len(it.source) > 5
    assert it.example
    assert it.on in ("exchange", "batch", "close", "live")
    assert set(it.apis) <= set(NAMES.values())


def test_ids_are_unique(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="twice"):
        rule("F03", "t", Severity.NOTE, source="s", asks="a", example="e")(print)


def test_rules_have_an_order() -> None:
    order = [REGISTRY[name].order for name in ("F03", "F10", "V01")]
    assert order == sorted(order)
