"""Findings of exchanges that were slow beside others of their API."""

from __future__ import annotations

from collections.abc import Iterator

from findings.gather.capture_facts import CaptureFacts
from findings.gather.slow_rows import LONG_POLLS, STEPS_MS
from findings.registry.ranked_finding import Rank, RankedFinding
from findings.sources.finding_filters import of_api
from findings.sources.finding_source import finds
from findings.sources.found_places import finding_of
from timeline.events.words import duration

_TIMES = 10
"""Slow exchanges take as many times the median of their API."""

_LEAST_COUNT = 10
"""Number of exchanges of an API with which its median says something."""


@finds(
    "slow",
    "Slow exchanges",
    "For each API with 10 exchanges or more those that took 10 times its median, and 100 ms or "
    "more: costs. Long polls count where they took twice the time that the request allowed; "
    "JoinGroup and SyncGroup, which wait for other members, are left to the timeline.",
)
def slow(facts: CaptureFacts) -> Iterator[RankedFinding]:
    """Yield a finding for each API."""
    for api, latencies in facts.slow.latencies.items():
        if latencies.count < _LEAST_COUNT:
            continue
        median_ns = latencies.percentile(50)
        steps = [at for at, ms in enumerate(STEPS_MS) if ms * 1_000_000 >= _TIMES * median_ns]
        places = facts.slow.slow(api, steps[0]) if steps else None
        if places is None or not places.count:
            continue
        least_ms = STEPS_MS[steps[0]]
        tests = [f"latency_ms >= {least_ms}"]
        if api in LONG_POLLS.values():
            tests.append(f"request.max_wait_ms <= {least_ms // 2}")
        yield finding_of(
            facts,
            places,
            f"slow:{api}",
            Rank.COSTS,
            f"{places.count:,} {api} took {duration(least_ms * 1_000_000)} or more, "
            f"at most {duration(places.longest_ns)}",
            detail=f"half of {latencies.count:,} took {duration(median_ns)} at most"
            + (", long polls that waited apart" if api in LONG_POLLS.values() else ""),
            filter=of_api(api, *tests),
            more="stats",
        )
