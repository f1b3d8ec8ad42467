"""From what was gathered to one ranked list, in which findings of one cause are one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields, replace
from functools import partial

from findings.gather.capture_facts import CaptureFacts
from findings.gather.guarded_sections import Sections
from findings.registry.ranked_finding import RANKS, RankedFinding, Subjects
from findings.sources.finding_source import SOURCES, FindingSource


def ranked(
    facts: CaptureFacts,
    sources: Iterable[FindingSource],
    sections: Sections,
    mask: Callable[[str], str],
) -> list[RankedFinding]:
    """
    Return all findings, the worst first; those of one cause are joined to the worst of them.

    Args:
        facts: What was gathered.
        sources: The sources to ask.
        sections: Records the sources that fail; the others go on.
        mask: Returns a text, or a mask if it holds a credential.
    """
    found: list[RankedFinding] = []
    for source in sources:
        found += sections.run(source.name, partial(_list, source, facts), list[RankedFinding]())
    order = list(SOURCES)
    found.sort(key=lambda each: (RANKS.index(each.rank), order.index(each.source), -each.count))
    return [_masked(each, mask) for each in _joined(found)]


def _list(source: FindingSource, facts: CaptureFacts) -> list[RankedFinding]:
    return list(source.find(facts))


def _joined(found: Sequence[RankedFinding]) -> Iterator[RankedFinding]:
    """
    Join findings that share a cause with a worse one of another source.

    What is joined joins nothing else: else all findings of one outage became a single one.
    """
    owners: dict[str, list[int]] = {}
    joined: dict[int, list[RankedFinding]] = {}
    for number, finding in enumerate(found):
        candidates = {owner for cause in finding.causes for owner in owners.get(cause, ())}
        others = [each for each in candidates if found[each].source != finding.source]
        if others:
            joined[min(others)].append(finding)
            continue
        joined[number] = []
        for cause in finding.causes:
            owners.setdefault(cause, []).append(number)
    for number, more in joined.items():
        first = found[number]
        subjects = first.subjects
        for each in more:
            subjects = subjects.joined(each.subjects)
        yield replace(first, subjects=subjects, joined=tuple(more))


def _masked(finding: RankedFinding, mask: Callable[[str], str]) -> RankedFinding:
    """Return a finding with masked texts where they hold a credential."""
    names = (tuple(map(mask, getattr(finding.subjects, each.name))) for each in fields(Subjects))
    return replace(
        finding,
        id=mask(finding.id),
        title=mask(finding.title),
        detail=mask(finding.detail),
        filter=mask(finding.filter),
        subjects=Subjects(*names),
        joined=tuple(_masked(each, mask) for each in finding.joined),
    )
