"""Comments of packets for Wireshark: what stands out, and what happened."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from dissector.engine.reading.capture import Capture
from dissector.protocol.embedded.secrecy.credentials import mask_texts
from dissector.query.filtered_capture import Capture as FilteredCapture
from dissector.view.text.escape import escaped

MAX_COMMENTS = 20
"""Maximum number of comments that a packet is given; the worst come first."""

MAX_TEXT = 2_000
"""Maximum length of one; longer ones are cut."""

SIGN = "kafkashark"
"""Begins each comment: `frame.comment contains "kafkashark"` finds them all."""


class AnalysisComments(NamedTuple):
    """
    What is written into the file.

    Attributes:
        packets: All comments of packets by number from 0, those of the capture first.
        section: The comment of the capture.
    """

    packets: dict[int, list[str]]
    section: str


def analysis_comments(capture: Capture, filter_text: str | None) -> AnalysisComments:
    """
    Return findings, with advice and violations, and events as comments of their packets.

    The capture is read twice.

    Args:
        capture: The capture.
        filter_text: Chooses the exchanges that the findings are about; None: all.
    """
    options = capture.options
    wanted = replace(options, packet_facts=options.packet_facts | {"comments"}, jobs=1)
    report = FilteredCapture(capture.paths, replace(wanted), filter_text).findings()
    read = FilteredCapture(capture.paths, wanted, filter_text)
    found: dict[int, list[str]] = defaultdict(list)
    for packet, text in (*_findings(report), *_events(read)):
        found[packet - 1].append(text)
    mask = _mask(read)
    assert read.reading is not None
    comments_of = read.reading.packet_columns().facts.comments_of
    packets = {}
    for number, texts in found.items():
        before = list(comments_of(number))
        added = [each for each in dict.fromkeys(map(mask, texts)) if each not in before]
        packets[number] = [*before, *added[:MAX_COMMENTS]]
    titles = [f"{each.rank}: {each.title}" for each in report]
    lines = [f"{SIGN}: {len(titles)} findings", *titles[:MAX_COMMENTS]]
    return AnalysisComments(packets, "\n".join(map(mask, lines)))


def _findings(report: object) -> Iterator[tuple[int, str]]:
    for each in report:  # type: ignore[attr-defined]
        more = f" ({each.detail})" if each.detail else ""
        for packet in each.packets:
            yield packet, f"{SIGN} {each.rank}: {each.title}{more}"


def _events(capture: FilteredCapture) -> Iterator[tuple[int, str]]:
    """Yield each event at the packet that shows it: the last one of its evidence."""
    for each in capture.timeline():
        packets = [
            packet
            for shown in each.evidence
            for packet in (shown.request_packet, shown.response_packet)
            if packet is not None
        ]
        if packets:
            cause = f": {each.cause}" if each.cause else ""
            text = f"{SIGN} {each.kind} {each.subject}: {each.event}{cause}; {each.text}"
            yield max(packets), text


def _mask(capture: FilteredCapture) -> Callable[[str], str]:
    """Return what makes a text printable, short, and free of secrets."""
    known = capture.logins.all

    def masked(text: str) -> str:
        shown = escaped(mask_texts(text, known))
        return shown if len(shown) <= MAX_TEXT else f"{shown[:MAX_TEXT]}..."

    return masked
