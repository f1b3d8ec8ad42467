"""Findings about the capture itself: what is missing of it."""

from __future__ import annotations

from collections.abc import Iterator

from findings.gather.capture_facts import CaptureFacts
from findings.registry.ranked_finding import Rank, RankedFinding
from findings.sources.finding_source import finds

_WITHOUT_MEANING = frozenset(("connections without their begin", "problems", "bytes lost"))
"""Lacks that are usual, or that other findings name."""


@finds(
    "damage",
    "Damage of the capture",
    "Lost, cut and unread packets, connections with one direction, TLS without keys: informs. "
    "What is missing can't be judged.",
)
def damage(facts: CaptureFacts) -> Iterator[RankedFinding]:
    """Yield a finding for each kind of missing traffic."""
    for lack in facts.lacks:
        if lack.count and lack.what not in _WITHOUT_MEANING:
            yield RankedFinding(
                f"damage:{lack.what}",
                Rank.INFORMS,
                f"the capture: {lack.count:,} {lack.what}",
                lack.count,
                detail=lack.meaning,
                more="streams",
            )
