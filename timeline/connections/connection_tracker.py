"""
Connections: opened, refused, broken off, with a hanging request, and storms of them.

Brokers close connections on versions that they do not have.

Source: KIP-35 and KIP-511 (ApiVersions); KIP-896 (removal of old versions);
RFC 9293 and RFC 1122 section 4.2.3.5 (TCP).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from dissector.protocol.releases.kafka_releases import VersionRange, range_text
from dissector.protocol.releases.removals import answered_range
from timeline.connections.hanging_requests import hanging, waiting_text
from timeline.events.event import Event, Evidence
from timeline.events.observed_exchange import ObservedExchange
from timeline.events.states import Fresh, States
from timeline.events.waits import Wait
from timeline.events.words import counted, duration
from timeline.trackers.tracker import Tracker, keep_proof
from timeline.trackers.transaction_state import client_of

API_VERSIONS = 18

MAX_REQUEST_BYTES = 104_857_600
"""Default of the broker's `socket.request.max.bytes`; larger requests close the connection."""

STORM, STORM_TIME_NS = 10, 10 * 10**9
"""Number of connections of a client within this time that count as a storm."""

STORM_END_NS = 10 * 10**9


Offers: TypeAlias = dict[int, VersionRange]
"""API key -> lowest and highest version."""


@dataclass(slots=True)
class Opened:
    """Recent connections of a client to a broker."""

    times: list[int] = field(default_factory=list)
    count: int = 0
    proof: list[Evidence] = field(default_factory=list)


class Connections(Tracker):
    """Follows connections; the subject of events is a client at a broker."""

    kind: ClassVar[str] = "connection"
    apis: ClassVar[frozenset[int]] = frozenset((API_VERSIONS,))
    sees_unanswered: ClassVar[bool] = True

    def __init__(self) -> None:
        self._opened: States[tuple[str, str], Opened] = States(Fresh(Opened))
        self._broken: States[int, bool] = States(Fresh(bool))
        self._known: States[int, bool] = States(Fresh(bool), limit=100_000)
        self._offers: States[str, Offers] = States(Fresh(dict))

    def observe(self, observed: ObservedExchange) -> Iterator[Event]:
        """Process an exchange that opens a connection, or stays unanswered."""
        if observed.wait is not None:
            yield from self._unanswered(observed, observed.wait)
        if observed.api_key == API_VERSIONS and observed.response is not None:
            yield from self._versions(observed)  # its request may have an unknown version

    def finish(self, now_ns: int) -> Iterator[Event]:
        """Report the storms open at the end of the capture."""
        for key, opened in self._opened.items():
            yield from self._storm(key, opened)

    def open_since_ns(self) -> int | None:
        """Return the begin of the oldest storm."""
        begins = (each.times[0] for each in self._opened.values() if each.count >= STORM)
        return min(begins, default=None)

    def _versions(self, observed: ObservedExchange) -> Iterator[Event]:
        number = observed.connection
        request, response = observed.request, observed.response
        name = None if request is None else request.get("client_software_name")
        software = f", {name} {request.client_software_version}" if name else ""
        version = observed.api_version
        if observed.error:
            text = f"connection {number}{software}: ApiVersions v{version} refused"
            yield self.instant(
                observed,
                _subject(observed),
                "versions refused",
                text,
                cause=observed.error,
                repeats=f"{software} {version}",
            )
            return
        if self._known.get(number):
            return
        self._known.put(number, True)
        offered = {
            each["api_key"]: (each["min_version"], each["max_version"]) for each in _apis(response)
        }
        if offered:
            self._offers.put(observed.broker, offered)
        apis = counted(len(_apis(response)), "API")
        text = f"connection {number}{software}: the broker offers {apis}"
        yield self.instant(observed, _subject(observed), "connected", text, repeats=software)
        yield from self._count(observed)

    def _count(self, observed: ObservedExchange) -> Iterator[Event]:
        """Count the connections of a client to a broker."""
        key = _subject(observed), observed.broker
        opened = self._opened.use(key)
        if opened.times and observed.time_ns - opened.times[-1] > STORM_END_NS:
            yield from self._storm(key, opened)
            del self._opened[key]
            opened = self._opened.use(key)
        opened.times.append(observed.time_ns)
        opened.count += 1
        keep_proof(opened.proof, observed.evidence)
        if opened.count < STORM:
            return
        if opened.times[-1] - opened.times[-STORM] > STORM_TIME_NS and opened.count == STORM:
            opened.count -= 1
            del opened.times[0], opened.proof[0]
        del opened.times[1:-STORM]

    def _storm(self, key: tuple[str, str], opened: Opened) -> Iterator[Event]:
        if opened.count < STORM:
            return
        took_ns = opened.times[-1] - opened.times[0]
        text = f"{counted(opened.count, 'connection')} in {duration(took_ns)}"
        yield self.event(
            key[0],
            "reconnect storm",
            text,
            time_ns=opened.times[0],
            end_ns=opened.times[-1],
            proof=opened.proof,
            brokers=[key[1]],
        )

    def _refusal(self, observed: ObservedExchange) -> str:
        """Return that the broker lacks the version of a request; empty if it has it."""
        offered, key = self._offers.get(observed.broker), observed.api_key
        version = observed.api_version
        if offered is None or key is None or version is None or key == API_VERSIONS:
            return ""
        answered = answered_range(offered, key)
        if answered is not None and answered[0] <= version <= answered[1]:
            return ""
        api = observed.api
        has = f"{range_text(answered)} of it only" if answered else "no version of it"
        return f"{api} v{version} is the cause: the broker offers {has} (see `kafkashark upgrade`)"

    def _unanswered(self, observed: ObservedExchange, wait: Wait) -> Iterator[Event]:
        """Report the first unanswered request of a connection."""
        number, hangs = observed.connection, hanging(observed, wait)
        if (not wait.ended and not hangs) or self._broken.get(number):
            return
        self._broken.put(number, True)
        message = observed.exchange.request
        size = observed.exchange.request_bytes or 0
        broken = "" if message is None else message.broken_off
        what = f"{observed.api} of {size:,} bytes"
        if broken and size > MAX_REQUEST_BYTES:
            text = (
                f"connection {number} ended within {what}; more than the default "
                f"socket.request.max.bytes of {MAX_REQUEST_BYTES:,}: brokers close the connection"
            )
            cause = "request too large"
        elif broken:
            text, cause = f"connection {number} ended within {what}", broken
            text += "; brokers close it on requests above socket.request.max.bytes"
        elif hangs:
            text, cause = f"{what} on connection {number} {waiting_text(observed, wait)}", hangs
        else:
            text, cause = f"connection {number} ended before the answer to {what}", wait.ended
        text += _ending(wait)
        refused = "" if broken or hangs or wait.closer == "client" else self._refusal(observed)
        if refused:
            text += f"; {refused}"
            cause = "unsupported version"
        if observed.mismatch:
            text, cause = f"connection {number}: {observed.mismatch}", "another protocol"
        yield self.event(
            _subject(observed),
            "broken off" if broken else "unanswered",
            text,
            time_ns=observed.time_ns,
            end_ns=max(wait.until_ns, observed.time_ns),
            proof=[observed.evidence],
            brokers=[observed.broker],
            cause=cause,
            certain=bool(observed.mismatch) or bool(refused) or (bool(hangs) and not broken),
            repeats=observed.api or "",
        )


def _apis(response: Any) -> Sequence[Any]:
    return response.api_keys or ()


def _ending(wait: Wait) -> str:
    """Return the side that ended the connection of an unanswered request, if captured."""
    if not wait.closer:
        return ""
    how = "closed or reset" if wait.ended == "rst" else "closed"
    return f"; the {wait.closer} {how} it first"


def _subject(observed: ObservedExchange) -> str:
    return f"{client_of(observed)} to {observed.broker}"
