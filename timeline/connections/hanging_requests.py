"""
Requests that hang: unanswered for longer than the request itself allows, or not even acknowledged.

Source: RFC 1122 section 4.2.3.5: after R1, at least 3 retransmissions, TCP takes a path for broken.
`request.timeout.ms` of Java's clients is 30 s by default; the fields of a request name the time for
which the broker may hold it.
"""

from __future__ import annotations

from timeline.events.observed_exchange import ObservedExchange
from timeline.events.waits import Wait
from timeline.events.words import counted, duration

PATIENCE_NS = 30 * 10**9
"""Time in which a broker should answer, beyond that of the request's own fields."""

POLL_INTERVAL_MS = 300_000
"""Default of `max.poll.interval.ms`, the time for which a member may wait for others."""

MANY_RESENT = 3
"""Number of retransmissions after which a path counts as broken."""

JOIN_GROUP, SYNC_GROUP = 11, 14

NETWORK, BROKER = "network", "broker"


def hanging(observed: ObservedExchange, wait: Wait) -> str:
    """Return the cause of a hanging request, `network` or `broker`; empty if it does not hang."""
    if wait.is_acknowledged is None or wait.has_gap:
        return ""
    took_ns = wait.until_ns - observed.time_ns
    if not wait.is_acknowledged:
        is_broken = wait.resent >= MANY_RESENT or took_ns > PATIENCE_NS
        return NETWORK if is_broken else ""
    return BROKER if took_ns > _allowed_ms(observed) * 1_000_000 + PATIENCE_NS else ""


def waiting_text(observed: ObservedExchange, wait: Wait) -> str:
    """Describe the wait of a hanging request."""
    took = duration(wait.until_ns - observed.time_ns)
    end = "" if wait.closer or wait.ended else ", when the capture ends"
    if wait.is_acknowledged:
        return f"was acknowledged by TCP, and not answered for {took}{end}"
    return (
        f"was never acknowledged by TCP for {took}{end}; {counted(wait.resent, 'retransmission')}"
    )


def _allowed_ms(observed: ObservedExchange) -> int:
    """Return the time for which a broker may hold a request."""
    request = observed.request
    if request is None or observed.api_key == SYNC_GROUP:
        return POLL_INTERVAL_MS  # until the leader of the group has sent the assignment
    names = ["max_wait_ms", "timeout_ms"]
    if observed.api_key == JOIN_GROUP:
        names += ["rebalance_timeout_ms", "session_timeout_ms"]
    values = (request.get(name) for name in names)
    return max((each for each in values if isinstance(each, int)), default=0)
