"""What was found in a capture: findings of advices, and what could not be judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from advise.registry.advice import RANKS, Advice, Rank
from dissector.notebook_forms import notebook_form


@dataclass(frozen=True, slots=True)
class Subject:
    """
    Whom or what a finding is about; empty texts where that does not apply.

    Attributes:
        client_id: Client id.
        host: Address of the client.
        software: Name and version of the client's software, or a guess by its client id.
        topic: Topic.
        group: Group.
        broker: `address:port` of the broker.
    """

    client_id: str = ""
    host: str = ""
    software: str = ""
    topic: str = ""
    group: str = ""
    broker: str = ""

    def __str__(self) -> str:
        client = f"{self.client_id or 'client without an id'} at {self.host}" if self.host else ""
        software = f"({self.software})" if self.software else ""
        words = (
            f"{client} {software}".strip(),
            f"group {self.group}" if self.group else "",
            f"topic {self.topic}" if self.topic else "",
            f"broker {self.broker}" if self.broker else "",
        )
        return ", ".join(filter(None, words))


@dataclass(frozen=True, slots=True)
class AdviceFinding:
    """
    Something found.

    Attributes:
        advice: The advice.
        subject: Whom it is about.
        found: What was found, in a sentence with its numbers.
        cost: What that cost here, in a sentence.
        number: The measured number.
        measure: What it measures, with its unit.
        threshold: The limit that it passed.
        count: Number of requests, or events, that it rests on.
        begin_ns: Time of the first one, in ns since the epoch.
        end_ns: Time of the last one.
        packets: Some packets that show it, from 1, in order.
        filter: Display filter for all of them.
    """

    advice: Advice
    subject: Subject
    found: str
    cost: str
    number: float
    measure: str
    threshold: float
    count: int
    begin_ns: int
    end_ns: int
    packets: tuple[int, ...]
    filter: str

    @property
    def rank(self) -> Rank:
        """The rank of its advice."""
        return self.advice.rank


@dataclass(slots=True)
class AdviceReport:
    """
    The advice on a capture.

    Attributes:
        advices: All advices that were looked for.
        findings: What was found, the worst first.
        judged: Id of an advice -> number of its subjects with enough evidence.
        unjudged: Id of an advice -> why subjects were not judged -> their number.
        begin_ns: Time of the first exchange, in ns since the epoch; 0 without any.
        end_ns: Time of the last one.
        clients: Number of clients.
        exchanges: Number of their exchanges.
        fail_on: The mildest rank that fails; None: none does.
        notes: What was not read, and why.
    """

    advices: list[Advice]
    findings: list[AdviceFinding]
    judged: dict[str, int]
    unjudged: dict[str, dict[str, int]]
    begin_ns: int = 0
    end_ns: int = 0
    clients: int = 0
    exchanges: int = 0
    fail_on: Rank | None = Rank.COSTLY
    notes: list[str] = field(default_factory=list)

    def __iter__(self) -> Iterator[AdviceFinding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __str__(self) -> str:
        counts = ", ".join(f"{self.count(rank)} {rank}" for rank in RANKS)
        seconds = (self.end_ns - self.begin_ns) / 1e9
        clients = f"{self.clients:,} client{'' if self.clients == 1 else 's'}"
        judged = sum(bool(count) for count in self.judged.values())
        return (
            f"{counts}; {clients}, {self.exchanges:,} exchanges in {seconds:,.1f} s; "
            f"{judged} of {len(self.advices)} advices judged"
        )

    def __repr__(self) -> str:
        """Return the summary in one line."""
        return f"<AdviceReport {'passed' if self.passed else 'failed'}: {self}>"

    def _repr_html_(self) -> str:
        return notebook_form(self)

    @property
    def passed(self) -> bool:
        """Whether nothing was found of a rank that fails."""
        if self.fail_on is None:
            return True
        failing = RANKS[: RANKS.index(self.fail_on) + 1]
        return all(each.rank not in failing for each in self.findings)

    def count(self, rank: Rank) -> int:
        """Return the number of findings of a rank."""
        return sum(each.rank is rank for each in self.findings)
