"""The evidence of a capture: one pass over its windows adds up what the detectors need."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from advise.evidence.call_tallies import CallTallies
from advise.evidence.cluster_tallies import ClusterTallies
from advise.evidence.data_tallies import DataTallies
from advise.evidence.explanations import Explanations
from advise.evidence.group_tallies import GroupTallies
from advise.evidence.key_sample import KeySample
from advise.evidence.tally import Tally, Total
from advise.evidence.window_rows import ClientName, KnownNames, WindowRows
from dissector.protocol.context import using
from dissector.summary.group_keys import Software
from dissector.summary.software_guess import guess_software
from dissector.summary.version_offers import VersionOffers

if TYPE_CHECKING:
    from dissector.engine.reading.capture import Capture, Window


class Span(NamedTuple):
    """
    A time range of a capture.

    Attributes:
        begin_ns: Begin, in ns since the epoch.
        end_ns: End.
    """

    begin_ns: int
    end_ns: int


class CaptureEvidence:
    """
    Totals of a capture, without the traffic of brokers among themselves.

    Attributes:
        names: The names by number.
        requests: Totals of requests and errors.
        data: Totals of produced and fetched data.
        groups: Totals of groups and transactions.
        cluster: Totals of metadata and logins.
        keys: A sample of keys.
        offers: Software of clients, versions of brokers.
        explanations: Reasons of rebalances.
    """

    def __init__(
        self, capture: Capture, linger_ms: float, hang_s: float, loop_rebalances: float
    ) -> None:
        """
        Begin.

        Args:
            capture: The capture.
            linger_ms: How long Produce requests could wait for each other.
            hang_s: Seconds without an answer after which a request hangs.
            loop_rebalances: Number of rebalances from which on a group's reasons are looked for.
        """
        self.names = KnownNames.new()
        self.requests = CallTallies(int(linger_ms * 1e6), int(hang_s * 1e9))
        self.data = DataTallies()
        self.groups = GroupTallies()
        self.cluster = ClusterTallies()
        self.keys = KeySample()
        self.offers = VersionOffers(capture)
        self.explanations = Explanations(capture)
        self._capture = capture
        self._loop_rebalances = loop_rebalances
        self._is_finished = False
        self._totals: dict[tuple[int, tuple[str, ...]], list[Total]] = {}

    def add(self, window: Window) -> None:
        """Add a window; windows must be passed in order."""
        capture, table = self._capture, window.exchanges
        if not len(table):
            return
        assert capture.reading is not None
        self.offers.observe(window)
        known = capture.known_of(window)
        with using(capture.options.schemas):
            rows = WindowRows(capture.reading, table, known, self.names)
            for part in (self.requests, self.data, self.groups, self.cluster):
                part.add(rows)
            self.requests.add_hanging(rows, window.ends, window.gaps)
            self.keys.add(rows)
            looping = self._looping_groups()
            of_groups = self.groups.group_rows(rows, looping) if looping else None
        if of_groups is not None:
            self.explanations.add(window, of_groups)

    def finish(self) -> None:
        """End the pass."""
        self._is_finished = True
        self._capture.names.mark_complete()
        self.explanations.finish()

    def totals(self, tally: Tally, *keys: str) -> list[Total]:
        """Return totals by some keys, without connections between brokers."""
        found = self._totals.get((id(tally), keys))
        if found is None:
            found = tally.by(*keys, without=self.requests.of_brokers)
            if self._is_finished:
                self._totals[id(tally), keys] = found
        return found

    @cached_property
    def span(self) -> Span:
        """The time from the first to the last request of a client."""
        calls = self.totals(self.requests.calls, "api")
        begin_ns = min((row["first_ns"] for row in calls), default=0)
        return Span(begin_ns, max((row["last_ns"] for row in calls), default=0))

    @cached_property
    def connections(self) -> dict[int, list[int]]:
        """Number of a client -> numbers of its connections."""
        found: dict[int, list[int]] = {}
        for row in self.totals(self.requests.calls, "client", "connection"):
            found.setdefault(row["client"], []).append(row["connection"])
        return found

    @cached_property
    def software(self) -> dict[int, set[Software]]:
        """Number of a client -> name and version of its software, where it sent them."""
        return {
            client: {self.offers.software_of(each) for each in connections} - {(None, None)}
            for client, connections in self.connections.items()
        }

    def client(self, number: int) -> ClientName:
        """Return a client."""
        return self.names.clients.name(number)

    def software_text(self, number: int) -> str:
        """Return the software of a client: as sent, or guessed by its client id."""
        sent = {" ".join(filter(None, each)) for each in self.software.get(number, ())}
        return ", ".join(sorted(sent)) or guess_software(self.client(number).client_id) or ""

    def topic(self, number: int) -> str:
        """Return the name of a topic, or its id without one; empty for none."""
        name = self.names.topics.name(number) if number >= 0 else ""
        return self._capture.names.name(name) if isinstance(name, str | UUID) else ""

    def _looping_groups(self) -> set[int]:
        """Return groups with as many rebalances as a loop has."""
        return {
            row["group"]
            for row in self.totals(self.groups.generations, "group")
            if row["most_generation"] - row["least_generation"] >= self._loop_rebalances
        }
