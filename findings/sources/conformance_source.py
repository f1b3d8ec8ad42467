"""Findings of conformance: violations of the rules of the protocol."""

from __future__ import annotations

from collections.abc import Iterator

from conform.registry.rank import Rank as RuleRank
from conform.registry.rank import Severity
from conform.registry.verdict import Cause, Finding
from findings.gather.capture_facts import CaptureFacts
from findings.registry.ranked_finding import Rank, RankedFinding, Subjects, first_packets
from findings.sources.finding_filters import of_messages
from findings.sources.finding_source import finds
from findings.sources.found_places import packet_causes


@finds(
    "conformance",
    "Violations of the protocol",
    "Of the rules of `kafkashark conform`, each with the cases of one cause: what breaks clients "
    "breaks, what differs from Kafka differs, notes inform.",
)
def conformance(facts: CaptureFacts) -> Iterator[RankedFinding]:
    """Yield a finding for the violations of each rule."""
    if facts.verdict is None:
        return
    by_rule: dict[str, list[Cause]] = {}
    for cause in facts.verdict.causes():
        by_rule.setdefault(cause.kind.first.rule.id, []).append(cause)
    for rule, causes in by_rule.items():
        found = [each for cause in causes for each in _findings(cause)]
        packets = first_packets(each.packet for each in found if each.packet is not None)
        first, count = causes[0].kind.first, sum(cause.count for cause in causes)
        if not facts.passes(packets):
            continue
        yield RankedFinding(
            f"conformance:{rule}",
            _rank(first),
            f"{first.rule.title}{f', {count:,} times' if count > 1 else ''}",
            count,
            detail=f"{first.side}: {first.found}",
            subjects=Subjects(tuple(dict.fromkeys(filter(None, map(_client, found))))),
            packets=packets,
            filter=of_messages(_packets(found, "request"), _packets(found, "response")),
            more=f"conform --explain {rule}",
            causes=frozenset(packet_causes(packets)),
        )


def _findings(cause: Cause) -> Iterator[Finding]:
    for kind in (cause.kind, *cause.others):
        yield from kind.findings


def _packets(found: list[Finding], message: str) -> set[int]:
    return {each.packet for each in found if each.message == message and each.packet is not None}


def _client(finding: Finding) -> str:
    return finding.client_id or finding.client.rpartition(":")[0]


def _rank(finding: Finding) -> Rank:
    if finding.severity is Severity.NOTE:
        return Rank.INFORMS
    return Rank.BREAKS if finding.rank is RuleRank.BREAKS else Rank.DIFFERS
