"""Words for findings and advices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from advise.registry.advice import Advice
from advise.registry.advice_report import AdviceFinding, AdviceReport
from dissector.view.text.escape import escaped

_LIBRARIES = (
    ("rdkafka", "librdkafka"),
    ("franz-go", "franz-go"),
    ("kgo", "franz-go"),
    ("sarama", "sarama"),
    ("kafka-python", "kafka-python"),
    ("aiokafka", "kafka-python"),
    ("kafkajs", "kafkajs"),
    ("java", "Java"),
)
"""A word in the software of a client, and the library whose settings it has."""


def library_of(finding: AdviceFinding) -> str | None:
    """Return the library whose setting changes a finding; None if unknown."""
    software = finding.subject.software.lower()
    return next((library for word, library in _LIBRARIES if word in software), None)


def setting_text(finding: AdviceFinding) -> str:
    """Return the setting to change: of the client's library, or where all are."""
    library = library_of(finding)
    if library is None:
        return f"by library: kafkashark advise --explain {finding.advice.id}"
    return f"{library}: {finding.advice.settings[library]}"


def packets_text(finding: AdviceFinding) -> str:
    """Return the packets of a finding, and how to see all of its exchanges."""
    first, last = finding.packets[0], finding.packets[-1]
    packets = f"packet {first}" if first == last else f"packets {first} to {last}"
    return f"{packets}; -Y '{finding.filter}'" if finding.filter else packets


def unjudged_lines(report: AdviceReport) -> Iterator[str]:
    """Yield why subjects were not judged, with their advices."""
    reasons: dict[str, Counter[str]] = {}
    for advice_id, counts in report.unjudged.items():
        for reason, count in counts.items():
            reasons.setdefault(reason, Counter())[advice_id] += count
    for reason, ids in reasons.items():
        yield f"{reason}: {', '.join(f'{name} ({count})' for name, count in ids.items())}"


def advice_lines(advice: Advice) -> Iterator[str]:
    """Yield the documentation of an advice: the output of `--explain`."""
    yield f"{advice.id}: {advice.title}"
    yield ""
    yield f"rank      {advice.rank}"
    yield f"what      {advice.what}"
    yield f"costs     {advice.cost}"
    for at, (library, setting) in enumerate(advice.settings.items()):
        yield f"{'settings' if not at else '':<9} {library}: {setting}"
    for at, (name, limit) in enumerate(advice.limits.items()):
        text = f"{advice.id}.{name}={limit.default:g}: {limit.meaning}"
        yield f"{'limits' if not at else '':<9} {text}"
    yield f"source    {advice.source}"


def advice_summary(report: AdviceReport, subject: str) -> str:
    """Return the summary of a report in one line."""
    return f"{escaped(subject)}: {report}"
