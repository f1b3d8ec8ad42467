"""Findings of the timeline: what happened to groups, producers, consumers and connections."""

from __future__ import annotations

from collections.abc import Iterator

from findings.gather.capture_facts import CaptureFacts
from findings.gather.event_groups import EventGroup
from findings.registry.ranked_finding import RANKS, Rank, RankedFinding, Subjects, first_packets
from findings.sources.failure_sources import error_rank
from findings.sources.finding_filters import of_evidence
from findings.sources.finding_source import finds
from findings.sources.found_places import packet_causes
from timeline.events.words import duration

_OF_DATA = {
    Rank.BREAKS: (
        *("failed", "offset out of range", "offset reset", "refused", "fenced", "hung up"),
        *("sequence gap", "producer id unknown", "batch too large"),
    ),
    Rank.COSTS: (
        *("leader changed", "topic created anew", "retried", "throttled", "batch repeated"),
        "fetch session lost",
    ),
    Rank.INFORMS: ("duplicate",),
}

_RANKS: dict[str, dict[Rank, tuple[str, ...]]] = {
    "group": {
        Rank.BREAKS: ("fenced", "commit refused", "refused", "not deleted"),
        Rank.COSTS: (
            *("rebalance", "flapping", "coordinator lost", "coordinator moved"),
            *("coordinator restarted", "coordinator away"),
        ),
        Rank.INFORMS: ("deleted", "lag"),
    },
    "transaction": {
        Rank.BREAKS: ("fenced", "commit refused", "refused", "aborted"),
        Rank.COSTS: ("left open",),
    },
    "producer": _OF_DATA,
    "consumer": _OF_DATA,
    "connection": {
        Rank.BREAKS: ("login failed", "denied", "unanswered", "broken off", "connect failed"),
        Rank.COSTS: ("reconnect storm",),
        Rank.DIFFERS: ("versions refused",),
    },
    "cluster": {
        Rank.BREAKS: (
            *("topic not created", "topic not deleted", "topic partitions not added"),
            "not reassigned",
        ),
        Rank.COSTS: ("ISR shrunk", "broker gone", "topic created anew"),
        Rank.INFORMS: (
            *("leader moved", "controller elected", "controller changed", "topic deleted"),
        ),
    },
}
"""Kind -> rank -> names of events; others, such as `connected`, do not stand out."""

_BY = {
    (kind, event): rank
    for kind, ranks in _RANKS.items()
    for rank, names in ranks.items()
    for event in names
}

_BY_CLIENT = "EndTxn"
"""Cause of a transaction that its own client aborted."""

_LONG_NS, _OFTEN = 100_000_000, 3
"""A rebalance that is shorter, of a group with fewer, costs little."""


@finds(
    "event",
    "Events of the timeline",
    "Equal events of one subject are one finding. Failures, refusals and fencing break; "
    "rebalances (of 100 ms, or three), changes of leaders and throttling cost; lag and moves "
    "inform. Errors that were fine when sent again are no worse as events. Events of normal "
    "work, such as new connections, are left out.",
)
def events(facts: CaptureFacts) -> Iterator[RankedFinding]:
    """Yield a finding for the equal events of each subject."""
    for (kind, subject, event, cause), group in facts.events.groups.items():
        rank = _rank(facts, (kind, event), cause, group)
        if rank is None or (event == "lag" and " 0 at the end" in group.longest.text):
            continue
        yield RankedFinding(
            f"event:{kind}:{event}:{cause}:{subject}",
            rank,
            f"{_subject_text(kind, subject)}: {_what_text(event, cause, group)}",
            group.count,
            detail=group.longest.text + ("" if group.longest.certain else " (uncertain)"),
            subjects=_subjects(kind, subject, group),
            packets=first_packets(group.packets),
            begin_ns=group.begin_ns,
            end_ns=group.end_ns,
            filter=of_evidence(group.evidence),
            more=f"timeline --kind {kind}",
            causes=frozenset(_causes(kind, event, cause, group)),
        )


def _rank(facts: CaptureFacts, name: tuple[str, str], cause: str, group: EventGroup) -> Rank | None:
    """Return the rank of equal events: no worse than that of the errors that prove them."""
    rank, (_, event) = _BY.get(name), name
    if event == "aborted" and cause == _BY_CLIENT:
        return Rank.INFORMS
    longest_ns = group.longest.end_ns - group.longest.time_ns
    if event == "rebalance" and longest_ns < _LONG_NS and group.count < _OFTEN:
        return Rank.INFORMS
    kinds = {(each.api or "", cause) for each in group.evidence} & facts.failed.places.keys()
    ranks = [error_rank(facts, kind) for kind in kinds]
    if rank is Rank.BREAKS and ranks:
        return min(ranks, key=RANKS.index)
    return rank


def _subject_text(kind: str, subject: str) -> str:
    return f"{kind} {subject}" if kind in ("group", "transaction") else subject


def _what_text(event: str, cause: str, group: EventGroup) -> str:
    if event == "lag":
        return group.longest.text.partition(":")[0]
    longest_ns = group.longest.end_ns - group.longest.time_ns
    named = f"{event} ({cause})" if cause else event
    times = f" {group.count:,} times" if group.count > 1 else ""
    if not longest_ns:
        return f"{named}{times}"
    return f"{named}{times}, {'at most ' if group.count > 1 else ''}{duration(longest_ns)}"


def _subjects(kind: str, subject: str, group: EventGroup) -> Subjects:
    names = (each.client_id or each.client.rpartition(":")[0] for each in group.evidence)
    groups = (subject,) if kind in ("group", "transaction") else ()
    return Subjects(tuple(dict.fromkeys(names)), (), groups)


def _causes(kind: str, event: str, cause: str, group: EventGroup) -> set[str]:
    causes = packet_causes(group.packets) | {event, f"error {cause}"}
    return causes | {f"rebalance {group.longest.subject}"} if event == "rebalance" else causes
