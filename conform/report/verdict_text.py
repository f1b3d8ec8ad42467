"""Words for verdicts, their findings and rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from conform.registry.rule import Rule, Side
from conform.registry.verdict import Cause, Fault, Finding, Verdict
from dissector.view.text.escape import escaped

_SHOWN_BYTES = 64
_MAX_SHOWN_RULES = 12


def summary_line(verdict: Verdict, subject: str) -> str:
    """Return the summary of a verdict in one line."""
    return f"{escaped(subject)}: {verdict}"


def fault_text(fault: Fault) -> str:
    """Describe a bug in kafkashark: the rule, the number of failures, and the first place."""
    return f"{count_text(fault.count)}: {fault} ({fault.where})"


def request_bytes_text(request: bytes) -> str:
    """Return the first bytes of a request to a live broker, in hexadecimal."""
    rest = f" ... ({len(request):,} bytes)" if len(request) > _SHOWN_BYTES else ""
    return f"{request[:_SHOWN_BYTES].hex(' ')}{rest}"


def other_findings_text(cause: Cause) -> str:
    """Return the number of other findings of a cause, by rule and API."""
    by_rule = Counter[str]()
    for kind in cause.others:
        by_rule[" ".join(filter(None, (kind.first.rule.id, kind.first.api)))] += kind.count
    shown = ", ".join(
        f"{name} ({count:,})" for name, count in by_rule.most_common(_MAX_SHOWN_RULES)
    )
    more = f", and {len(by_rule) - _MAX_SHOWN_RULES} more" * (len(by_rule) > _MAX_SHOWN_RULES)
    return f"{count_text(cause.count - cause.kind.count)} more: {shown}{more}"


def location_text(finding: Finding) -> str:
    """Return the location of a finding: message, connection, packet, field and bytes."""
    parts = []
    if finding.message:
        version = "" if finding.version is None else f" v{finding.version}"
        parts.append(f"{finding.api or 'unknown'}{version} {finding.message}")
    if finding.connection is not None:
        parts.append(f"connection {finding.connection}")
    if finding.packet is not None:
        place = f" ({finding.place})" if finding.place else ""
        parts.append(f"packet {finding.packet}{place}")
    if finding.correlation_id is not None:
        parts.append(f"id {finding.correlation_id}")
    if finding.path:
        parts.append(finding.path)
    if finding.span is not None:
        parts.append(f"bytes [{finding.span[0]}..{finding.span[1]})")
    return escaped(", ".join(parts))


def side_text(finding: Finding) -> str:
    """Return the side that broke the rule: its software, client id, address and origin."""
    address = getattr(finding, finding.side)
    name = f'"{finding.client_id}"' if finding.client_id and finding.side is Side.CLIENT else ""
    origin = f"from {finding.origin}" if finding.origin and finding.side is Side.CLIENT else ""
    words = (finding.side, finding.software, name, address, origin)
    return escaped(" ".join(filter(None, words)))


def count_text(count: int) -> str:
    """Return a count in words: `once`, `1,000 times`."""
    return "once" if count == 1 else f"{count:,} times"


def rule_lines(rule: Rule) -> Iterator[str]:
    """Yield the documentation of a rule: the output of `--explain`."""
    yield f"{rule.id} {rule.title}"
    yield ""
    yield f"severity  {rule.severity}"
    yield f"rank      {rule.rank}"
    yield f"expected  {rule.asks}"
    yield f"violation {rule.example}"
    yield f"source    {rule.source}"
    yield f"checked   {'on a running broker' if rule.on == 'live' else 'in a capture'}"
