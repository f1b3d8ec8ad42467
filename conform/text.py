"""A verdict for people."""

from __future__ import annotations

from collections.abc import Iterator

from conform.rule import Rule, Severity
from conform.verdict import Finding, Kind, Verdict
from dissector.view.escape import escaped


def text_lines(verdict: Verdict, subject: str) -> Iterator[str]:
    """
    Yield the findings, then what was not judged, then the sum of it.

    Args:
        verdict: The verdict.
        subject: What was judged: files, or an address.
    """
    for kind in verdict:
        if not kind.known:
            yield from _kind_lines(kind)
            yield ""
    reasons = list(_unjudged_lines(verdict))
    if reasons:
        yield "Not judged"
        yield from reasons
        yield ""
    yield summary_line(verdict, subject)


def summary_line(verdict: Verdict, subject: str) -> str:
    """Return the sum of a verdict in one line."""
    counts = ", ".join(
        f"{verdict.count(severity):,} {severity}{'s' * (verdict.count(severity) != 1)}"
        for severity in Severity
    )
    known = sum(kind.count for kind in verdict if kind.known)
    of_baseline = f", {known:,} known by the baseline" * bool(known)
    more = f", {verdict.uncounted:,} more not told apart" * bool(verdict.uncounted)
    judged = [tally.judged for tally in verdict.tallies.values() if tally.judged]
    return (
        f"{escaped(subject)}: {counts}{of_baseline}{more}; {len(judged)} of "
        f"{len(verdict.rules)} rules were judged, {sum(judged):,} times"
    )


def place_text(finding: Finding) -> str:
    """Return where a finding shows: message, connection, packet, field and bytes."""
    parts = []
    if finding.message:
        version = "" if finding.version is None else f" v{finding.version}"
        parts.append(f"{finding.api or 'unknown'}{version} {finding.message}")
    if finding.connection is not None:
        parts.append(f"connection {finding.connection}")
    if finding.packet is not None:
        parts.append(f"packet {finding.packet + 1}")  # as Wireshark counts
    if finding.correlation_id is not None:
        parts.append(f"id {finding.correlation_id}")
    if finding.path:
        parts.append(finding.path)
    if finding.span is not None:
        parts.append(f"bytes [{finding.span[0]}..{finding.span[1]})")
    return escaped(", ".join(parts))


def who_text(finding: Finding) -> str:
    """Return who broke the rule."""
    address = getattr(finding, finding.side)
    return escaped(" ".join(filter(None, (finding.side, finding.software, address))))


def times_text(count: int) -> str:
    """Return how often."""
    return "once" if count == 1 else f"{count:,} times"


def rule_lines(rule: Rule) -> Iterator[str]:
    """Yield all that is to be said of a rule: what `--explain` prints."""
    yield f"{rule.id} {rule.title}"
    yield ""
    yield f"severity  {rule.severity}"
    yield f"asks      {rule.asks}"
    yield f"breaks    {rule.example}"
    yield f"source    {rule.source}"
    yield f"judged    {'by asking a live broker' if rule.on == 'live' else 'from a capture'}"


def _kind_lines(kind: Kind) -> Iterator[str]:
    first = kind.first
    rule = first.rule
    yield f"{first.severity} {rule.id} {rule.title} ({times_text(kind.count)})"
    yield f"  asks   {rule.asks}"
    for finding in kind.findings:
        yield f"  found  {escaped(finding.found)}"
        yield f"         {who_text(finding)}: {place_text(finding)}"


def _unjudged_lines(verdict: Verdict) -> Iterator[str]:
    """Yield a line for each reason; rules that have it as often share it."""
    rules: dict[tuple[str, int], list[str]] = {}
    for rule in verdict.rules:
        for why, count in verdict.tallies[rule.id].unjudged.most_common():
            rules.setdefault((why, count), []).append(rule.id)
    for (why, count), ids in rules.items():
        yield f"  {times_text(count)}: {escaped(why)} ({' '.join(ids)})"
