"""Advice on captures: the function behind `kafkashark advise` and `kafkashark.advise`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from advise.adviser import advise_windows
from advise.catalogue import ADVICES
from advise.registry.advice import Advice, Rank
from advise.registry.advice_limits import limits_of
from advise.registry.advice_report import AdviceReport
from advise.report import advice_document  # noqa: F401  (adds the form of reports in notebooks)
from advise.script_advice import script_advices
from dissector.engine.reading.capture import Capture
from dissector.errors import UsageError, suggestion
from dissector.protocol.context import using
from dissector.public import open_capture
from dissector.query.capture_sources import Sources


def advise(
    *captures: Sources | Capture,
    select: str | Iterable[str] = (),
    ignore: str | Iterable[str] = (),
    limits: Mapping[str, float] | None = None,
    ports: Iterable[int] = (),
    keylogs: Iterable[str | Path] = (),
    fail_on: Rank | str | None = Rank.COSTLY,
) -> AdviceReport:
    """
    Return advice on the use of Kafka in a capture, as `kafkashark advise` does.

        report = advise("a.pcap", limits={"tiny-batches.records": 5})
        for finding in report:  # the worst first
            print(finding.advice.id, finding.subject, finding.found, finding.packets)
        assert report.passed, report

    Memory does not grow with the number of messages. No file with settings is read.

    Args:
        captures: Parts of one capture in any order, as for `open_capture` (names of files, file
            objects, bytes, lists), or one `Capture` of it.
        select: Ids of advices, also with commas; empty: all.
        ignore: The advices to omit.
        limits: Thresholds: `advice.name` -> value.
        ports: Treat connections on these ports as Kafka, and ignore all others.
        keylogs: Files with the secrets of TLS connections (NSS key log, RFC 9850).
        fail_on: The mildest rank that fails: `costly`, `risky` or `informs`; None: none.

    Returns:
        The findings, and what was not judged.

    Raises:
        CaptureError: A file can't be opened, or is not a capture.
        UsageError: An unknown advice, threshold or rank, or no capture.
    """
    values = limits_of(f"{name}={value}" for name, value in (limits or {}).items())
    rank = _rank(fail_on)
    if not captures:
        raise UsageError("advise needs a capture: the name of a file, or a Capture")
    first = captures[0]
    if isinstance(first, Capture):
        if len(captures) > 1:
            raise UsageError("advise expects one Capture, or names of files")
        capture = first
    else:
        paths = [each for each in captures if not isinstance(each, Capture)]
        capture = open_capture(*paths, ports=ports, keylogs=keylogs)
    settings = capture.options.values
    more = script_advices(settings.scripts if settings else (), capture.notices.append)
    advices = select_advices(select, ignore, more)
    with using(capture.options.schemas):
        report = advise_windows(
            advices, values, capture, capture.windows(gleaning=True, checking=False)
        )
    report.fail_on = rank
    return report


def select_advices(
    select: str | Iterable[str], ignore: str | Iterable[str], more: Iterable[Advice] = ()
) -> list[Advice]:
    """
    Return the advices that are selected and not ignored, in the order of their declaration.

    Args:
        select: Ids; without any all advices are selected.
        ignore: Ids.
        more: Advices besides ours: those of scripts.

    Raises:
        UsageError: An advice does not exist.
    """
    known = {**ADVICES, **{each.id: each for each in more}}
    chosen, omitted = (_ids(each, known) for each in (select, ignore))
    return [
        each
        for each in known.values()
        if (each.id in chosen or not chosen) and each.id not in omitted
    ]


def advice_by_id(name: str, known: Mapping[str, Advice] = ADVICES) -> Advice:
    """
    Return one of the known advices.

    Raises:
        UsageError: It does not exist.
    """
    if name not in known:
        raise UsageError(f"there is no advice {name!r}{suggestion(name, known)}")
    return known[name]


def _ids(given: str | Iterable[str], known: Mapping[str, Advice]) -> set[str]:
    texts = [given] if isinstance(given, str) else given
    names = {word.strip() for text in texts for word in text.split(",")} - {""}
    return {advice_by_id(name, known).id for name in names}


def _rank(name: Rank | str | None) -> Rank | None:
    if name is None:
        return None
    if name not in tuple(Rank):
        raise UsageError(f"fail_on takes {', '.join(Rank)}, not {name!r}")
    return Rank(name)
