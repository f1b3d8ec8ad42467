"""Words for findings and headlines, for all forms."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence

from dissector.view.text.value_text import time_text
from findings.registry.finding_report import FindingReport, Headline
from findings.registry.ranked_finding import RankedFinding
from timeline.events.words import MAX_LISTED, duration, ranges

_MOST_NAMES, _MOST_APIS = 5, 8


def headline_lines(headline: Headline) -> Iterator[str]:
    """Yield what a capture is: its exchanges, who speaks, the APIs, how complete it is."""
    begin = f" from {time_text(headline.begin_ns)[:19]}Z" if headline.begin_ns else ""
    if headline.exchanges:
        took = duration(round(headline.seconds * 1e9))
        share = headline.failed / headline.exchanges
        yield f"{_counted(headline.exchanges, 'exchange')} in {took}{begin}"
        yield (
            f"{headline.failed:,} failed ({share:.1%}), {headline.unanswered:,} without a response"
        )
    else:
        yield f"no exchanges{begin}"
    yield (
        f"{_counted(headline.clients, 'client')}, {_counted(len(headline.brokers), 'broker')}, "
        f"{headline.kafka_connections:,} of {_counted(headline.connections, 'connection')} with "
        f"Kafka, {_counted(headline.packets, 'packet')}"
    )
    apis = list(headline.apis.items())
    if apis:
        more = len(apis) - _MOST_APIS
        listed = ", ".join(f"{name} {count:,}" for name, count in apis[:_MOST_APIS])
        yield listed + (f", and {_counted(more, 'other API')}" if more > 0 else "")
    yield completeness(headline)


def completeness(headline: Headline) -> str:
    """Return in a line what is missing of a capture."""
    tls = "no TLS"
    if headline.tls:
        tls = f"{headline.decrypted:,} of {_counted(headline.tls, 'TLS connection')} read"
    if headline.is_complete:
        return f"complete: no packet known to be lost or cut; {tls}"
    return f"not complete: {', '.join(headline.lacks)}; {tls}"


def summary(report: FindingReport, subject: str) -> str:
    """Return a report in one line."""
    return f"{subject}: {report}"


def who(finding: RankedFinding) -> str:
    """Return whom and what a finding is about."""
    subjects = finding.subjects
    parts = (
        _named("client", subjects.clients),
        _named("group", subjects.groups),
        _named("topic", subjects.topics),
    )
    return "; ".join(filter(None, parts))


def where(finding: RankedFinding, begin_ns: int, time: Callable[[int], str] | None = None) -> str:
    """Return packets and time of a finding; times are seconds since the first packet by default."""
    parts = []
    if finding.packets:
        listed = ranges(finding.packets, MAX_LISTED)
        parts.append(f"packet{'s' * (len(finding.packets) > 1)} {listed}")
    if finding.begin_ns:
        text = time or (lambda time_ns: f"{(time_ns - begin_ns) / 1e9:.3f} s")
        begin, end = text(finding.begin_ns), text(finding.end_ns)
        parts.append(f"at {begin}" if begin == end else f"from {begin} to {end}")
    return ", ".join(parts)


def next_commands(report: FindingReport, captures: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield commands that go on from a report, and what they show."""
    files = " ".join(map(shlex.quote, captures))
    headline = report.headline
    if headline.tls > headline.decrypted:
        yield f"kafkashark {files} --keylog FILE", "with the secrets of TLS: docs/tls.md"
    if not headline.exchanges:
        yield f"kafkashark streams {files}", "the connections"
        return
    yield f"kafkashark browse {files}", "the exchanges on a screen"
    if headline.failed:
        yield f"kafkashark pairs {files} -Y errors", "the exchanges that failed"
    yield f"kafkashark timeline {files}", "events, with their causes"
    yield f"kafkashark stats {files}", "response times by API, client, topic and broker"
    yield f"kafkashark report {files} -o report.html", "all on one page"


def _named(what: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    more = len(names) - _MOST_NAMES
    listed = ", ".join(names[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")
    return f"{what}{'s' * (len(names) > 1)} {listed}"


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
