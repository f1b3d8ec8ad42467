"""A page for each rule of `conform`, and for each advice."""

from __future__ import annotations

from collections.abc import Iterator

import conform.probe.probes  # noqa: F401 (adds its rules to the registry)
from advise.advice_page import advice_section
from advise.catalogue import ADVICES
from conform.docs_page import FAMILIES
from conform.registry.rule import Rule
from conform.rules import REGISTRY
from tools.site.markup import escaped, table


def rule_pages() -> dict[str, str]:
    """Return the Markdown of each rule's page by its id."""
    return {each.id: "\n".join(_rule_lines(each)) for each in REGISTRY.values()}


def advice_pages() -> dict[str, str]:
    """Return the Markdown of each advice's page by its id."""
    return {
        each.id: "\n".join([f"# {each.id}", "", *advice_section(each)]) for each in ADVICES.values()
    }


def _rule_lines(rule: Rule) -> Iterator[str]:
    family = FAMILIES[rule.id[0]]
    where = "a running broker" if rule.on == "live" else "a capture"
    apis = ", ".join(f"[{name}](../apis/{name}.md)" for name in rule.apis)
    command = "conform --target broker:9092" if rule.on == "live" else "conform a.pcap"
    yield from (f"# {rule.id} {escaped(rule.title)}", "", escaped(rule.asks), "")
    yield from table(
        ("", ""),
        (
            ("violation", escaped(rule.example)),
            ("severity", rule.severity),
            ("rank", rule.rank),
            ("family", f"{rule.id[0]}: {family}"),
            ("APIs", apis or "all"),
            ("checked in", where),
            ("source", escaped(rule.source)),
        ),
    )
    yield from ("", "```console", f"$ kafkashark {command} --select {rule.id}", "```")
    yield from ("", "[All rules](../../conformance.md)")
