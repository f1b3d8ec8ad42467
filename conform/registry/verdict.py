"""The verdict: findings, grouped and counted, and the counts of each rule."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

from conform.registry.rank import Rank, Severity, rank_of
from conform.registry.rule import Rule, Side
from dissector.errors import bug_location
from dissector.notebook_forms import notebook_form
from dissector.view.text.escape import VARIABLE_PARTS

MAX_FINDINGS_PER_KIND = 3
"""Number of equal findings that are retained in full."""

MAX_KINDS = 10_000
"""Limit of the retained kinds of findings; further findings are only counted."""

_MAX_VERSIONS = 100

RULE_FAILED = "the rule failed because of a bug in kafkashark"

_SEVERITY_ORDER, _RANK_ORDER = tuple(Severity), tuple(Rank)
_INDEX = re.compile(r"\[\d+\]")


@dataclass(frozen=True, slots=True)
class Finding:
    """
    A violation of a rule.

    Attributes:
        rule: The rule.
        severity: The severity, possibly different from the rule's.
        side: The side that broke it.
        software: Name and version of that side, from ApiVersions; empty if unknown.
        connection: Number of the connection in the capture; None for a live broker.
        client: `address:port`.
        broker: `address:port`.
        packet: Number of the packet that completed the message, from 1; None without one.
        correlation_id: Correlation id of the exchange.
        api: Name of the API; empty if unknown.
        version: Version of the request.
        path: The field of the message's body, with indices; empty: the message as a whole.
        span: Its byte range in the frame, without the frame's size field.
        message: `request`, `response`, or empty.
        found: The finding.
        capture: The file; empty for a live broker.
        place: The file and the number of the packet there, if the capture is several files.
        cause: A likely common cause of findings of many rules, such as a broker that closes every
            connection; empty for an independent finding.
        request: The bytes sent to a live broker, without the size field; empty for a capture.
        frame: The first bytes of the message's frame, and its size; None for a live broker.
        client_id: The client id of the request; empty if unknown.
        origin: The client before a proxy; empty if unknown.
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
    place: str = ""
    cause: str = ""
    request: bytes = b""
    frame: tuple[bytes, int] | None = None
    client_id: str = ""
    origin: str = ""

    @property
    def rank(self) -> Rank:
        """The rank of the rule, unless the cause or the severity of this finding changes it."""
        if self.cause:
            return Rank.BREAKS
        is_usual = self.severity is self.rule.severity
        return self.rule.rank if is_usual else rank_of("", self.severity)

    @property
    def key(self) -> str:
        """The key that equal findings share: without addresses, indices and numbers."""
        return finding_key(self.rule, self.side, self.software, self.api, self.path, self.found)


def finding_key(rule: Rule, side: Side, software: str, api: str, path: str, found: str) -> str:
    """Return the key that equal findings share, as a baseline stores it."""
    return "|".join((rule.id, side, software, api, _general(path), _general_text(found)))


@lru_cache(4096)
def _general(path: str) -> str:
    """Return a path without indices; findings have few paths."""
    return _INDEX.sub("[]", path)


@lru_cache(1024)
def _general_text(found: str) -> str:
    """Return a text without its variable parts; the same is often found again."""
    return VARIABLE_PARTS.sub("#", found)


@dataclass(slots=True)
class Kind:
    """
    Equal findings.

    Attributes:
        key: Their common key.
        findings: The first of them.
        count: Their total number.
        known: Whether a baseline contains them.
        versions: The API versions of the findings.
    """

    key: str
    findings: list[Finding] = field(default_factory=list)
    count: int = 0
    known: bool = False
    versions: set[int | None] = field(default_factory=set)

    @property
    def first(self) -> Finding:
        """The first finding."""
        return self.findings[0]


@dataclass(frozen=True, slots=True)
class Cause:
    """
    Findings with a common cause.

    Attributes:
        kind: The first kind, which is reported.
        others: The other kinds, mostly of other rules.
    """

    kind: Kind
    others: list[Kind]

    @property
    def count(self) -> int:
        """The total number of findings."""
        return self.kind.count + sum(kind.count for kind in self.others)


@dataclass(slots=True)
class Tally:
    """
    Counts of one rule.

    Attributes:
        judged: Number of cases that could be judged.
        broken: Number of violations.
        unjudged: Number of cases that could not be judged, by reason.
        seconds: Run time of the rule.
        is_stopped: Whether the rule reached a budget, and was not judged any further.
    """

    judged: int = 0
    broken: int = 0
    unjudged: Counter[str] = field(default_factory=Counter)
    seconds: float = field(default=0.0, compare=False)
    is_stopped: bool = False


@dataclass(slots=True)
class Fault:
    """
    A bug in kafkashark: a rule raised an exception, and did not judge the observation.

    Attributes:
        rule: Id of the rule; empty if the code that prepares observations failed.
        error: The exception, and the line of kafkashark that raised it.
        where: The first observation with the failure.
        count: Number of failures.
    """

    rule: str
    error: str
    where: str
    count: int = 0

    def __str__(self) -> str:
        return f"{self.rule or 'conform'} failed: {self.error}"


class Verdict:
    """
    The result of checking a capture or a live broker.

    Attributes:
        rules: The rules that were applied, in their order.
        tallies: Counts by rule id.
        kinds: Findings by their key.
        uncounted: Number of findings beyond the limit of kinds.
        captures: The files that were judged.
        fail_on: The mildest severity that fails.
        require_judged: The least number of judged rules for a verdict to pass.
        problems: Problems of the files, one line each; empty for a live broker.
        not_read: What was not read of the captures, or is no Kafka, one line each.
        faults: Bugs in kafkashark, by rule and place in the code.
    """

    def __init__(self, rules: list[Rule]) -> None:
        self.rules = rules
        self.tallies = {rule.id: Tally() for rule in rules}
        self.kinds: dict[str, Kind] = {}
        self.uncounted = 0
        self.captures: list[str] = []
        self.fail_on = Severity.ERROR
        self.require_judged = 1
        self.problems: list[str] = []
        self.not_read: list[str] = []
        self.faults: dict[tuple[str, str], Fault] = {}

    def fault(self, rule: str, error: Exception, where: str) -> None:
        """Record an exception in a rule, which thus did not judge its observation."""
        # Omit the text of the exception, which may contain secrets of the capture.
        text = bug_location(error)
        self.faults.setdefault((rule, text), Fault(rule, text, where)).count += 1
        if rule:
            self.tallies[rule].unjudged[RULE_FAILED] += 1

    def kind(self, key: str, version: int | None = None) -> Kind | None:
        """Count a finding of a kind; return the kind if the finding is to be retained in full."""
        kind = self.kinds.get(key)
        if kind is None:
            if len(self.kinds) >= MAX_KINDS:
                self.uncounted += 1
                return None
            kind = self.kinds[key] = Kind(key)
        kind.count += 1
        if len(kind.versions) < _MAX_VERSIONS:
            kind.versions.add(version)
        return kind if len(kind.findings) < MAX_FINDINGS_PER_KIND else None

    def name_places(self, places_text: Callable[[Iterable[int]], str]) -> None:
        """Add to findings the files of their packets, which the function returns."""
        for kind in self.kinds.values():
            kind.findings = [
                each if each.packet is None else replace(each, place=places_text([each.packet]))
                for each in kind.findings
            ]

    def __iter__(self) -> Iterator[Kind]:
        """Yield the kinds of findings: the worst first, then by rule, then the most frequent."""
        return iter(
            sorted(
                self.kinds.values(),
                key=lambda kind: (
                    _SEVERITY_ORDER.index(kind.first.severity),
                    _RANK_ORDER.index(kind.first.rank),
                    kind.first.rule.order,
                    -kind.count,
                    kind.key,
                ),
            )
        )

    def __str__(self) -> str:
        """Return the summary in one line."""
        breaking = self.count(Severity.ERROR, Rank.BREAKS)
        counts = ", ".join(
            f"{self.count(severity):,} {severity}{'s' * (self.count(severity) != 1)}"
            + f" ({breaking:,} break{'s' * (breaking == 1)} clients)"
            * (severity is Severity.ERROR and breaking > 0)
            for severity in Severity
        )
        known = sum(kind.count for kind in self.kinds.values() if kind.known)
        of_baseline = f", {known:,} in the baseline" * bool(known)
        more = f", {self.uncounted:,} more not grouped" * bool(self.uncounted)
        faults = len({fault.rule for fault in self.faults.values()})
        failed = f"; {faults} rule{'s' * (faults != 1)} failed" * bool(faults)
        stopped = sum(tally.is_stopped for tally in self.tallies.values())
        ended = f"; {stopped} rule{'s' * (stopped != 1)} stopped at a budget" * bool(stopped)
        judged = sum(tally.judged for tally in self.tallies.values())
        return (
            f"{counts}{of_baseline}{more}; {self.rules_judged} of {len(self.rules)} rules were "
            f"judged, {judged:,} times{failed}{ended}"
        )

    def __repr__(self) -> str:
        return f"<Verdict {'passed' if self.passed else 'failed'}: {self}>"

    def _repr_html_(self) -> str:
        return notebook_form(self)

    def causes(self) -> list[Cause]:
        """Return the kinds of findings in their order, grouped by cause."""
        found: list[Cause] = []
        firsts: dict[tuple[str, bool], Cause] = {}
        for kind in self:
            first = firsts.get((kind.first.cause, kind.known)) if kind.first.cause else None
            if first is not None:
                first.others.append(kind)
                continue
            found.append(Cause(kind, []))
            firsts[kind.first.cause, kind.known] = found[-1]
        return found

    def count(self, severity: Severity, rank: Rank | None = None) -> int:
        """Return the number of findings of a severity, and rank, that are not in a baseline."""
        return sum(
            kind.count
            for kind in self.kinds.values()
            if kind.first.severity is severity
            and rank in (None, kind.first.rank)
            and not kind.known
        )

    @property
    def fails(self) -> bool:
        """Whether there are findings at least as severe as `fail_on` that are not in a baseline."""
        return any(self.count(each) for each in Severity if self.is_failing(each))

    @property
    def is_enough(self) -> bool:
        """Whether the required number of rules could be judged."""
        return self.rules_judged >= self.require_judged

    @property
    def passed(self) -> bool:
        """Whether no finding fails, and enough rules were judged."""
        return not self.fails and self.is_enough

    def is_failing(self, severity: Severity) -> bool:
        """Return whether findings of a severity make a build fail."""
        return _SEVERITY_ORDER.index(severity) <= _SEVERITY_ORDER.index(self.fail_on)

    @property
    def rules_judged(self) -> int:
        """The number of rules that were judged at least once."""
        return sum(bool(tally.judged) for tally in self.tallies.values())
