"""Findings of exchanges that failed: errors, requests without a response, unreadable messages."""

from __future__ import annotations

from collections.abc import Iterator

from findings.gather.capture_facts import CaptureFacts
from findings.gather.failed_rows import Kind
from findings.registry.ranked_finding import Rank, RankedFinding
from findings.sources.finding_filters import literal, of_api
from findings.sources.finding_source import finds
from findings.sources.found_places import counted, finding_of
from timeline.events.words import duration

_USUAL = {
    ("ApiVersions", "UNSUPPORTED_VERSION"): "the client then takes a version of the broker",
    ("JoinGroup", "MEMBER_ID_REQUIRED"): "the client joins again with the id that it was given",
    ("Heartbeat", "REBALANCE_IN_PROGRESS"): "asks the member to join again",
    ("Fetch", "FETCH_SESSION_ID_NOT_FOUND"): "the client opens a new fetch session",
    ("Fetch", "INVALID_FETCH_SESSION_EPOCH"): "the client opens a new fetch session",
}
"""
API and error that belong to the protocol, and what follows.

Source: KIP-511 (versions), KIP-394 (member ids), KIP-227 (fetch sessions).
"""

_HANGS_NS = 30 * 10**9
"""Time without a response from which on a request hangs: `request.timeout.ms` of Java's clients."""


@finds(
    "error",
    "Errors in responses",
    "For each API and error one finding: breaks, unless the same client sent the same request "
    "again and it was fine each time: costs. Errors that are steps of the protocol, such as "
    "MEMBER_ID_REQUIRED, inform.",
)
def errors(facts: CaptureFacts) -> Iterator[RankedFinding]:
    """Yield a finding for each API and error."""
    for (api, error), places in facts.failed.places.items():
        fine, usual = facts.failed.fine[api, error], _USUAL.get((api, error), "")
        yield finding_of(
            facts,
            places,
            f"error:{api}:{error}",
            error_rank(facts, (api, error)),
            f"{places.count:,} {api} failed: {error}",
            detail=usual or _repeated_text(fine, places.count),
            filter=of_api(api, f"errors == {literal(error)}"),
            more="findings --explain error",
            causes={f"error {error}"},
        )


def error_rank(facts: CaptureFacts, kind: Kind) -> Rank:
    """Return the rank of an error that the capture has."""
    if kind in _USUAL:
        return Rank.INFORMS
    is_fine = facts.failed.fine[kind] == facts.failed.places[kind].count
    return Rank.COSTS if is_fine else Rank.BREAKS


def _repeated_text(fine: int, count: int) -> str:
    if not fine:
        return "not fine later in the capture"
    return "fine when sent again" if fine == count else f"{fine:,} of them fine when sent again"


@finds(
    "unanswered",
    "Requests without a response",
    "For each API the requests whose response is not in the capture: breaks if one was sent 30 s "
    "or more before its end, else informs, as these may be answered later.",
)
def unanswered(facts: CaptureFacts) -> Iterator[RankedFinding]:
    """Yield a finding for each API."""
    for api, places in facts.unanswered.items():
        wait_ns = facts.end_ns - places.begin_ns
        yield finding_of(
            facts,
            places,
            f"unanswered:{api}",
            Rank.BREAKS if wait_ns >= _HANGS_NS else Rank.INFORMS,
            f"{counted(places.count, _named(api, 'request'))} without a response",
            detail=f"the oldest was sent {duration(wait_ns)} before the end of the capture",
            filter=of_api(api, "status == unanswered"),
            more="timeline --kind connection",
            causes={"unanswered"},
        )


@finds(
    "problem",
    "Messages that can't be read to their end",
    "For each API the exchanges with a problem in `pairs`: differs.",
)
def problems(facts: CaptureFacts) -> Iterator[RankedFinding]:
    """Yield a finding for each API."""
    for api, places in facts.broken.items():
        yield finding_of(
            facts,
            places,
            f"problem:{api}",
            Rank.DIFFERS,
            f"{counted(places.count, _named(api, 'exchange'))} with bytes that can't be read",
            detail="the column problems names the field and the byte",
            filter=of_api(api, "problems"),
            more="pairs --columns api,problems",
        )


def _named(api: str, what: str) -> str:
    return f"{api or 'unknown'} {what}"
