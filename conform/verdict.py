"""What judging gave: findings, equal ones counted, and how often each rule could be asked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from conform.rule import Rule, Severity, Side
from dissector.errors import mistake_place

SHOWN = 3
"""How many equal findings are kept in full."""

MOST_KINDS = 10_000
"""Kinds of findings that are kept; more are only counted."""

PARTICULARS = re.compile(r"'[^']*'|\"[^\"]*\"|[0-9a-f]{8}-[0-9a-f-]{27}|-?\d+")
"""What differs from one finding to an equal one: quoted words, ids, numbers."""

FAILED = "the rule failed, which is a mistake of kafkashark"

_BAD = tuple(Severity)
_INDEX = re.compile(r"\[\d+\]")


@dataclass(frozen=True, slots=True)
class Finding:
    """
    A rule that was broken.

    Attributes:
        rule: The rule.
        severity: The rule's, unless this case is another one.
        side: Who broke it.
        software: Name and version of that side, as far as ApiVersions told; else empty.
        connection: Number of the connection in the capture; None for a live broker.
        client: `address:port`.
        broker: Likewise.
        packet: Number of the packet that completed the message, from 0; None where there is none.
        correlation_id: Of the exchange.
        api: Name of the API; empty where that is not known.
        version: Of the request.
        path: The field of the message's body, with indices; empty: the message as a whole.
        span: Its place in the frame, behind the frame's size.
        message: `request`, `response`, or empty.
        found: What was found.
        capture: The file; empty for a live broker.
    """

    rule: Rule
    severity: Severity
    side: Side
    found: str
    software: str = ""
    connection: int | None = None
    client: str = ""
    broker: str = ""
    packet: int | None = None
    correlation_id: int | None = None
    api: str = ""
    version: int | None = None
    message: str = ""
    path: str = ""
    span: tuple[int, int] | None = None
    capture: str = ""

    @property
    def key(self) -> str:
        """What equal findings have in common: all but addresses, indices and numbers."""
        return finding_key(self.rule, self.side, self.software, self.api, self.path, self.found)


def finding_key(rule: Rule, side: Side, software: str, api: str, path: str, found: str) -> str:
    """Return what equal findings have in common, as a baseline keeps it."""
    place, what = _INDEX.sub("[]", path), PARTICULARS.sub("#", found)
    return "|".join((rule.id, side, software, api, place, what))


@dataclass(slots=True)
class Kind:
    """
    Equal findings.

    Attributes:
        key: What they have in common.
        findings: The first of them.
        count: How many there were.
        known: Whether a baseline has them.
    """

    key: str
    findings: list[Finding] = field(default_factory=list)
    count: int = 0
    known: bool = False

    @property
    def first(self) -> Finding:
        """The first of them."""
        return self.findings[0]


@dataclass(slots=True)
class Tally:
    """
    How often one rule was asked.

    Attributes:
        judged: How often it could say.
        broken: How often it was broken.
        unjudged: How often it could not say, by the reason.
        seconds: How long it took; 0 where that was not measured.
    """

    judged: int = 0
    broken: int = 0
    unjudged: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0


@dataclass(slots=True)
class Fault:
    """
    A mistake of ours: a rule failed, and judged nothing there.

    Attributes:
        rule: Its id; empty where what prepares exchanges for the rules failed.
        error: The exception, and the line of ours that raised it.
        where: What it was asked about first.
        count: How often.
    """

    rule: str
    error: str
    where: str
    count: int = 0

    def __str__(self) -> str:
        return f"{self.rule or 'conform'} failed: {self.error}"


class Verdict:
    """
    Everything that judging gave.

    Attributes:
        rules: Those that were asked, in their order.
        tallies: By id of the rule.
        kinds: Findings by their key.
        uncounted: Findings whose kinds were too many to be kept.
        faults: Mistakes of ours, by rule and place in our code.
    """

    def __init__(self, rules: list[Rule]) -> None:
        self.rules = rules
        self.tallies = {rule.id: Tally() for rule in rules}
        self.kinds: dict[str, Kind] = {}
        self.uncounted = 0
        self.faults: dict[tuple[str, str], Fault] = {}

    def fault(self, rule: str, error: Exception, where: str) -> None:
        """Note that a rule failed: it judged nothing of what it was asked about."""
        # Its text is left out: it may quote what the capture keeps secret.
        what = f"{type(error).__name__} in {mistake_place(error)}"
        self.faults.setdefault((rule, what), Fault(rule, what, where)).count += 1
        if rule:
            self.tallies[rule].unjudged[FAILED] += 1

    def kind(self, key: str) -> Kind | None:
        """Count one more finding of a kind; return the kind if it still wants it in full."""
        kind = self.kinds.get(key)
        if kind is None:
            if len(self.kinds) >= MOST_KINDS:
                self.uncounted += 1
                return None
            kind = self.kinds[key] = Kind(key)
        kind.count += 1
        return kind if len(kind.findings) < SHOWN else None

    def __iter__(self) -> Iterator[Kind]:
        """Yield the kinds of findings: the worst first, then by rule, then the most first."""
        return iter(
            sorted(
                self.kinds.values(),
                key=lambda kind: (
                    _BAD.index(kind.first.severity),
                    kind.first.rule.order,
                    -kind.count,
                    kind.key,
                ),
            )
        )

    def count(self, severity: Severity) -> int:
        """Return how many findings of a severity there are that no baseline has."""
        return sum(
            kind.count
            for kind in self.kinds.values()
            if kind.first.severity is severity and not kind.known
        )
