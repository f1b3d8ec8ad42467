"""Findings about exchanges of one kind."""

from __future__ import annotations

from typing import Any

from findings.gather.capture_facts import CaptureFacts
from findings.gather.part_rows import Places
from findings.registry.ranked_finding import Rank, RankedFinding, Subjects, first_packets


def finding_of(
    facts: CaptureFacts, places: Places, id: str, rank: Rank, title: str, **more: Any
) -> RankedFinding:
    """Return a finding about some exchanges; `more` are its other attributes."""
    causes = {*more.pop("causes", ()), *packet_causes(places.packets)}
    return RankedFinding(
        id,
        rank,
        title,
        places.count,
        subjects=Subjects(
            _by_count(places.clients),
            _by_count({facts.topic_name(each): n for each, n in places.topics.items()}),
        ),
        packets=first_packets(places.packets),
        begin_ns=places.begin_ns,
        end_ns=places.end_ns,
        causes=frozenset(causes),
        **more,
    )


def packet_causes(packets: Any) -> set[str]:
    """Return what findings share whose exchanges are the same."""
    return {f"packet {each}" for each in packets}


def counted(count: int, what: str) -> str:
    """Return a number with its noun: `1 request`, `2,000 requests`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _by_count(counts: dict[str, int]) -> tuple[str, ...]:
    return tuple(sorted(counts, key=lambda name: (-counts[name], name)))
