"""Sources of findings: functions of what was gathered of a capture, registered by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from dissector.errors import UsageError, suggestion

if TYPE_CHECKING:
    from findings.gather.capture_facts import CaptureFacts
    from findings.registry.ranked_finding import RankedFinding

Find: TypeAlias = "Callable[[CaptureFacts], Iterable[RankedFinding]]"
"""Returns the findings of a source."""


class FindingSource(NamedTuple):
    """
    A source of findings.

    Attributes:
        name: Its name, the begin of the ids of its findings.
        title: What it finds, as a headline.
        meaning: When it finds something, and how that is ranked, in sentences.
        find: Returns its findings.
    """

    name: str
    title: str
    meaning: str
    find: Find


SOURCES: dict[str, FindingSource] = {}
"""Every source by its name, in the order of their findings; filled by `findings.sources`."""


def finds(name: str, title: str, meaning: str) -> Callable[[Find], Find]:
    """Register a function as a source; see `FindingSource`."""

    def register(find: Find) -> Find:
        assert name not in SOURCES, f"source {name} is registered twice"
        SOURCES[name] = FindingSource(name, title, meaning, find)
        return find

    return register


def source_by_name(name: str) -> FindingSource:
    """
    Return a source.

    Raises:
        UsageError: It does not exist.
    """
    if name not in SOURCES:
        raise UsageError(f"there is no source of findings {name!r}{suggestion(name, SOURCES)}")
    return SOURCES[name]


def select_sources(select: str | Iterable[str], ignore: str | Iterable[str]) -> list[FindingSource]:
    """
    Return the sources that are selected and not ignored, in their order.

    Raises:
        UsageError: A source does not exist.
    """
    chosen, omitted = (_names(each) for each in (select, ignore))
    return [
        each
        for each in SOURCES.values()
        if (each.name in chosen or not chosen) and each.name not in omitted
    ]


def _names(given: str | Iterable[str]) -> set[str]:
    texts = [given] if isinstance(given, str) else given
    words = {word.strip() for text in texts for word in text.split(",")} - {""}
    return {source_by_name(word).name for word in words}
