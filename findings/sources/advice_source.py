"""Findings of advice, and of the check of an upgrade."""

from __future__ import annotations

from collections.abc import Iterator

from advise.registry.advice import Rank as AdviceRank
from advise.registry.advice_report import AdviceFinding
from findings.gather.capture_facts import CaptureFacts
from findings.registry.ranked_finding import Rank, RankedFinding, Subjects, first_packets
from findings.sources.finding_filters import of_api
from findings.sources.finding_source import finds
from findings.sources.found_places import counted

_RANKS = {
    AdviceRank.COSTLY: Rank.COSTS,
    AdviceRank.RISKY: Rank.COSTS,
    AdviceRank.INFORMS: Rank.INFORMS,
}

_CAUSES = {
    "unknown-topic-loop": ("error UNKNOWN_TOPIC_OR_PARTITION", "error UNKNOWN_TOPIC_ID"),
    "denied-loop": ("denied",),
    "stale-leader": ("error NOT_LEADER_OR_FOLLOWER", "error FENCED_LEADER_EPOCH"),
    "hung-requests": ("unanswered",),
    "throttling": ("throttled",),
    "offsets-out-of-range": ("error OFFSET_OUT_OF_RANGE",),
    "commits-in-rebalances": ("error REBALANCE_IN_PROGRESS",),
    "zombie-members": ("error UNKNOWN_MEMBER_ID", "error ILLEGAL_GENERATION"),
    "too-large": ("error MESSAGE_TOO_LARGE", "error RECORD_LIST_TOO_LARGE"),
    "open-transaction": ("left open",),
}
"""Advice -> what it is about, in the words of other sources."""

_ON_REBALANCES = ("rebalance-loop", "classic-group", "stops-polling")

_MOST_TESTS = 20


@finds(
    "advice",
    "Bad use of Kafka",
    "Of `kafkashark advise`: costly and risky use costs, the rest informs.",
)
def advice(facts: CaptureFacts) -> Iterator[RankedFinding]:
    """Yield the findings of each advice as one."""
    by_advice: dict[str, list[AdviceFinding]] = {}
    for each in facts.advice or ():
        if facts.passes(each.packets):
            by_advice.setdefault(each.advice.id, []).append(each)
    for name, found in by_advice.items():
        first, subjects = found[0], [each.subject for each in found]
        causes = {*_CAUSES.get(name, ())}
        if name in _ON_REBALANCES:
            causes |= {f"rebalance {each.group}" for each in subjects}
        tests = dict.fromkeys(each.filter for each in found if each.filter)
        yield RankedFinding(
            f"advice:{name}",
            _RANKS[first.rank],
            f"{first.advice.title}{f', {len(found):,} times' if len(found) > 1 else ''}",
            sum(each.count for each in found),
            detail=first.found,
            subjects=Subjects(
                _distinct(each.client_id or each.host for each in subjects),
                _distinct(each.topic for each in subjects),
                _distinct(each.group for each in subjects),
            ),
            packets=first_packets(packet for each in found for packet in each.packets),
            begin_ns=min(each.begin_ns for each in found),
            end_ns=max(each.end_ns for each in found),
            filter=_any_of(list(tests)),
            more=f"advise --explain {name}",
            causes=frozenset(causes),
        )


@finds(
    "upgrade",
    "Clients that an upgrade breaks",
    "Clients with requests that the newest release of Kafka no longer reads: informs, as nothing "
    "fails before the upgrade.",
)
def upgrade(facts: CaptureFacts) -> Iterator[RankedFinding]:
    """Yield one finding for all clients that break."""
    rows = [row for row in facts.upgrade.rows if row["verdict"] == "breaks"]
    if not rows:
        return
    uses = dict.fromkeys((row["api"], row["api_version"]) for row in rows)
    tests = [of_api(api, f"api_version == {version}") for api, version in uses]
    yield RankedFinding(
        "upgrade:breaks",
        Rank.INFORMS,
        f"{counted(facts.upgrade.broken, 'client')} of {facts.upgrade.subjects:,} will break with "
        f"brokers of Kafka {facts.release}",
        sum(row["count"] for row in rows),
        detail="they use " + ", ".join(f"{api} v{version}" for api, version in list(uses)[:8]),
        subjects=Subjects(_distinct(str(row["client_id"] or row["client"]) for row in rows)),
        filter=_any_of(tests),
        more=f"upgrade --to {facts.release}",
    )


def _distinct(names: Iterator[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, names)))


def _any_of(tests: list[str]) -> str:
    chosen = tests[:_MOST_TESTS]
    return chosen[0] if len(chosen) == 1 else " or ".join(f"({each})" for each in chosen)
