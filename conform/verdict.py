"""What judging gave: findings, equal ones counted, and how often each rule could be asked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from conform.rule import Rule, Severity, Side

SHOWN = 3
"""How many equal findings are kept in full."""

MOST_KINDS = 10_000
"""Kinds of findings that are kept; more are only counted."""

PARTICULARS = re.compile(r"'[^']*'|\"[^\"]*\"|[0-9a-f]{8}-[0-9a-f-]{27}|-?\d+")
"""What differs from one finding to an equal one: quoted words, ids, numbers."""

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
    """

    judged: int = 0
    broken: int = 0
    unjudged: Counter[str] = field(default_factory=Counter)


class Verdict:
    """
    Everything that judging gave.

    Attributes:
        rules: Those that were asked, in their order.
        tallies: By id of the rule.
        kinds: Findings by their key.
        uncounted: Findings whose kinds were too many to be kept.
    """

    def __init__(self, rules: list[Rule]) -> None:
        self.rules = rules
        self.tallies = {rule.id: Tally() for rule in rules}
        self.kinds: dict[str, Kind] = {}
        self.uncounted = 0

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
