"""The page of the documentation that lists every rule: `python -m conform.docs_page --write`."""

from __future__ import annotations

import sys
from pathlib import Path

import conform.probe.probes  # noqa: F401 (puts its rules into the registry)
from conform.registry.rule import Rule
from conform.rule_selection import sort_rules
from conform.rules import REGISTRY

FAMILIES = {
    "F": "Frames, headers, order",
    "E": "Encoding of primitive types",
    "V": "Negotiation of versions",
    "B": "Record batches",
    "T": "Idempotence and transactions",
    "X": "Fetch",
    "M": "Metadata",
    "G": "Groups",
    "S": "SASL",
    "Q": "Quotas and deprecations",
    "C": "Codes and values of answers",
    "A": "Lists and answers",
    "N": "Numbers",
    "L": "Logs and their offsets",
    "H": "Share groups",
    "R": "Streams groups",
    "O": "Telemetry",
    "P": "Asked of a live broker",
}

_BEGIN, _END = (
    "<!-- rules: made by `python -m conform.docs_page --write` -->",
    "<!-- end of rules -->",
)


def rules_page() -> str:
    """Return the rules of the registry, a section for each family."""
    lines = [f"{len(REGISTRY)} rules."]
    for letter, heading in FAMILIES.items():
        rules = [rule for rule in sort_rules(REGISTRY.values()) if rule.id[0] == letter]
        if rules:
            lines += ["", f"### {letter}: {heading}", ""]
            lines += ["| rule | severity | rank | asks | breaks it | source |"]
            lines += ["|---|---|---|---|---|---|"]
            lines += map(_row, rules)
    return "\n".join(lines)


def with_rules_in(text: str) -> str:
    """
    Return a page with its list of rules replaced by that of the registry.

    Raises:
        SystemExit: The page has no marks around the list.
    """
    before, begin, rest = text.partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        raise SystemExit(f"the page has no {_BEGIN}")
    return f"{before}{begin}\n\n{rules_page()}\n\n{end}{after}"


def _row(rule: Rule) -> str:
    name = f"{rule.id} {rule.title}"
    cells = (name, rule.severity, rule.rank, rule.asks, rule.example, rule.source)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def main(page: Path, arguments: list[str]) -> int:
    """Print the rules, or write them into the page."""
    if "--write" in arguments:
        page.write_text(with_rules_in(page.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(rules_page())
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(__file__).parents[1] / "docs" / "conformance.md", sys.argv[1:]))
