"""
Waits that only a broker's own request log shows: in purgatory, and for quotas of any API.

Source: Kafka, RequestChannel.scala (times of a request); KIP-124 (quotas on request time).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from dissector.protocol.apis import KEYS
from dissector.protocol.headers import FETCH, PRODUCE
from timeline.events.event import Event
from timeline.events.observed_exchange import ObservedExchange
from timeline.trackers.throttling import THROTTLED, WaitRuns, WaitWords, throttle_time_ms
from timeline.trackers.tracker import Tracker

_LEAST_MS = 100
_NS_PER_MS = 1_000_000

WAIT_BY_DESIGN = frozenset((FETCH, KEYS["JoinGroup"], KEYS["SyncGroup"], KEYS["ShareFetch"]))
"""APIs that wait for records, or for other members: groups have their own events."""

_HELD = WaitWords("held", "purgatory", "held, for followers or the controller,")


class LoggedWaits(Tracker):
    """Follows the waits of clients, by the times in logs."""

    kind: ClassVar[str] = "connection"
    logged: ClassVar[tuple[tuple[str, int], ...]] = (
        ("throttle_ms", 1),
        ("remote_ms", _LEAST_MS * _NS_PER_MS),
    )

    def __init__(self) -> None:
        self._throttled = WaitRuns(self, THROTTLED)
        self._held = WaitRuns(self, _HELD)

    def observe(self, observed: ObservedExchange) -> Iterator[Event]:
        """Process an exchange that waited."""
        account = observed.exchange.account
        throttle_ms, remote_ms = account["throttle_ms"] or 0, account["remote_ms"] or 0
        # Producers and consumers have events of their own for what their responses say.
        is_said = observed.api_key in (PRODUCE, FETCH) and throttle_time_ms(observed) > 0
        if throttle_ms > 0 and not is_said:
            yield from self._throttled.add(observed, throttle_ms)
        if remote_ms >= _LEAST_MS and observed.api_key not in WAIT_BY_DESIGN:
            yield from self._held.add(observed, remote_ms)

    def open_since_ns(self) -> int | None:
        """Return the begin of the oldest run."""
        begins = (self._throttled.open_since_ns(), self._held.open_since_ns())
        return min((each for each in begins if each is not None), default=None)

    def finish(self, now_ns: int) -> Iterator[Event]:
        """Report the runs open at the end of the log."""
        yield from self._throttled.finish()
        yield from self._held.finish()
