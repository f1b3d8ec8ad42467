"""All that stands out in a capture, and what the capture is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dissector.notebook_forms import notebook_form
from findings.registry.ranked_finding import RANKS, Rank, RankedFinding


@dataclass(frozen=True, slots=True)
class Headline:
    """
    What a capture is.

    Attributes:
        begin_ns: Time of the first packet, in ns since the epoch; 0 without any.
        end_ns: End of the last exchange.
        packets: Number of packets.
        connections: Number of TCP connections.
        kafka_connections: Those with Kafka.
        brokers: Addresses of brokers.
        clients: Number of clients: client ids and hosts.
        exchanges: Number of exchanges, of those that pass the filter.
        failed: Those with an error in the response.
        unanswered: Those without a response.
        apis: API -> number of exchanges, the most frequent first.
        tls: Number of TLS connections.
        decrypted: Those that are read.
        lacks: What is missing of the capture, in words; empty if nothing is.
    """

    begin_ns: int = 0
    end_ns: int = 0
    packets: int = 0
    connections: int = 0
    kafka_connections: int = 0
    brokers: Sequence[str] = ()
    clients: int = 0
    exchanges: int = 0
    failed: int = 0
    unanswered: int = 0
    apis: Mapping[str, int] = field(default_factory=dict)
    tls: int = 0
    decrypted: int = 0
    lacks: Sequence[str] = ()

    @property
    def seconds(self) -> float:
        """The time that it covers."""
        return max(0, self.end_ns - self.begin_ns) / 1e9

    @property
    def is_complete(self) -> bool:
        """Whether nothing is known to be missing."""
        return not self.lacks


@dataclass(slots=True)
class FindingReport:
    """
    What stands out in a capture.

    Attributes:
        headline: What the capture is.
        findings: The findings, the worst first.
        unjudged: What could not be judged, and why, in sentences.
        faults: Source -> the bug in kafkashark that stopped it.
        fail_on: The mildest rank that fails; None: none does.
    """

    headline: Headline
    findings: list[RankedFinding]
    unjudged: list[str] = field(default_factory=list)
    faults: dict[str, str] = field(default_factory=dict)
    fail_on: Rank | None = None

    def __iter__(self) -> Iterator[RankedFinding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __str__(self) -> str:
        if not self.headline.exchanges:
            return f"nothing can be judged: no exchanges; {self._counts()}"
        return self._counts()

    def _counts(self) -> str:
        if not self.findings:
            return "nothing stands out in what could be judged"
        counts = ((rank, self.count(rank)) for rank in RANKS)
        return ", ".join(f"{count} {rank}" for rank, count in counts if count)

    def __repr__(self) -> str:
        """Return the summary in one line."""
        return f"<FindingReport {'passed' if self.passed else 'failed'}: {self}>"

    def _repr_html_(self) -> str:
        return notebook_form(self)

    @property
    def passed(self) -> bool:
        """Whether there were exchanges to judge, and nothing has a rank that fails."""
        if self.fail_on is None:
            return True
        failing = RANKS[: RANKS.index(self.fail_on) + 1]
        return self.headline.exchanges > 0 and all(each.rank not in failing for each in self)

    def count(self, rank: Rank) -> int:
        """Return the number of findings of a rank."""
        return sum(each.rank is rank for each in self.findings)
