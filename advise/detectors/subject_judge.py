"""Collects what detectors find, and what they can't judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TypeAlias

from advise.evidence.capture_evidence import CaptureEvidence
from advise.evidence.tally import Total
from advise.registry.advice import Advice
from advise.registry.advice_report import AdviceFinding, Subject
from dissector.protocol.apis import KEYS, NAMES

TOO_LITTLE = "too few requests, or too short a time"


class Judge:
    """
    The findings of one advice.

    Attributes:
        advice: The advice.
        evidence: The evidence of the capture.
        findings: What was found.
        judged: Number of subjects with enough evidence.
        unjudged: Why others were not judged, with their number.
    """

    def __init__(
        self, advice: Advice, limits: Mapping[str, float], evidence: CaptureEvidence
    ) -> None:
        self.advice, self.evidence = advice, evidence
        self.findings: list[AdviceFinding] = []
        self.judged = 0
        self.unjudged: Counter[str] = Counter()
        self._limits = limits

    def limit(self, name: str) -> float:
        """Return a threshold."""
        return self._limits[name]

    def enough(self, totals: Iterable[Total], count: str = "count") -> Iterator[Total]:
        """Yield the totals with the least count and time; the others are not judged."""
        for row in totals:
            is_enough = row[count] >= self._limits.get("count", 0)
            if is_enough and seconds_of(row) >= self._limits.get("seconds", 0):
                self.judged += 1
                yield row
            else:
                self.unjudged[TOO_LITTLE] += 1

    def subject(
        self, client: int, *, topic: str = "", group: str = "", broker: str = ""
    ) -> Subject:
        """Return a client as the subject of a finding."""
        name = self.evidence.client(client)
        software = self.evidence.software_text(client)
        return Subject(name.client_id, name.host, software, topic, group, broker)

    def add(
        self,
        row: Total,
        subject: Subject,
        number: float,
        limit: str,
        measure: str,
        found: str,
        cost: str = "",
        apis: Collection[str] = (),
        more: str = "",
    ) -> None:
        """
        Add a finding.

        Args:
            row: The totals that it rests on.
            subject: Whom it is about.
            number: The measured number.
            limit: Name of the threshold that it passed.
            measure: What the number measures, with its unit.
            found: What was found, as a sentence.
            cost: What that cost, as a sentence; by default why such things cost.
            apis: Names of the APIs of its requests.
            more: A further test of the display filter.
        """
        packets = sorted({row["first_packet"], row["last_packet"]})
        self.findings.append(
            AdviceFinding(
                self.advice,
                subject,
                found,
                cost or self.advice.cost,
                round(number, 3),
                measure,
                self._limits[limit],
                row["count"],
                row["first_ns"],
                row["last_ns"],
                tuple(packets),
                display_filter(subject, apis, more),
            )
        )


Detector: TypeAlias = Callable[[Judge], None]

DETECTORS: dict[str, Detector] = {}
"""The detector of each advice, by its id; filled by `advise.detectors`."""


def detects(advice: Advice) -> Callable[[Detector], Detector]:
    """Register a function as the detector of an advice."""

    def register(call: Detector) -> Detector:
        assert advice.id not in DETECTORS, f"{advice.id} has two detectors"
        DETECTORS[advice.id] = call
        return call

    return register


def seconds_of(row: Total) -> float:
    """Return the seconds from the first to the last request of totals."""
    return max(0, row["last_ns"] - row["first_ns"]) / 1e9


def rate_of(row: Total, count: str = "count") -> float:
    """Return the requests a second of totals; those of a moment have the rate 0."""
    seconds = seconds_of(row)
    return (row[count] - 1) / seconds if seconds and row[count] > 1 else 0.0


API_NAMES, API_KEYS = NAMES, KEYS


def display_filter(subject: Subject, apis: Collection[str] = (), more: str = "") -> str:
    """Return a display filter for the requests of a subject."""
    tests = []
    if subject.client_id:
        tests.append(f"client_id == {_quoted(subject.client_id)}")
    elif subject.host:
        tests.append(f"client contains {_quoted(subject.host + ':')}")
    if len(apis) == 1:
        tests.append(f"api == {next(iter(apis))}")
    elif apis:
        tests.append(f"api in {{{', '.join(apis)}}}")
    if subject.topic:
        tests.append(f"topic == {_quoted(subject.topic)}")
    if more:
        tests.append(more)
    return " and ".join(tests)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
