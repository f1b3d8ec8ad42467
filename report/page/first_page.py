"""What a reader sees first: six figures, the latency of each exchange, lanes of events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from dissector.view.document.content import (
    Block,
    Card,
    Cards,
    Drawing,
    Finding,
    Findings,
    Markup,
    Mood,
    Notes,
)
from findings.gather.capture_lacks import Lack
from findings.output.finding_document import finding_block
from findings.output.finding_texts import where, who
from findings.registry.ranked_finding import RankedFinding
from report.gather.figures import Figures
from report.page.safe_text import time_us
from timeline.events.words import duration

_DOTS = (
    "Each dot is an exchange, at the time of its request; a cross has an error, a pale dot is a "
    "fetch that waited and brought nothing. Drag to zoom all plots, lanes and tables of exchanges."
)
_DENSITY = "The darker, the more exchanges; the redder, the more of them with errors. Drag to zoom."
_PLOT = (
    '<noscript><p class="note">This plot needs scripts.</p></noscript>{legend}'
    '<figure id="latency-plot" class="wide-plot" role="group" aria-label="{label}"></figure>'
)
_LEGEND = '<div id="latency-legend" class="legend"></div>'


def stands_out(figures: Figures) -> Iterator[Block]:
    """Yield what stands out, the worst first, and what was not judged."""
    report = figures.report
    if report is None:
        return
    yield Findings([_finding(each, figures) for each in report])
    if not report.findings:
        yield Notes([f"{report}."])
    faults = [f"{source}: bug in kafkashark: {bug}" for source, bug in report.faults.items()]
    yield Notes([*report.unjudged, *faults])


def _finding(found: RankedFinding, figures: Figures) -> Finding:
    begin_ns = figures.reading.source.begin_ns
    shown = finding_block(found, begin_ns)
    hint = "; ".join(filter(None, (who(found), where(found, begin_ns))))
    if not found.begin_ns:
        return replace(shown, is_open=False, hint=hint, filter=found.filter)
    times = [(each - figures.begin_ns) / 1e9 for each in (found.begin_ns, found.end_ns)]
    begin_s, end_s = (round(each, 6) for each in times)
    return replace(
        shown, is_open=False, hint=hint, filter=found.filter, begin_s=begin_s, end_s=end_s
    )


def latency_drawing(figures: Figures) -> Drawing:
    """Return the place of the plot of latencies, which a script draws."""
    is_dense = figures.dots.is_full
    label = "Density of latencies" if is_dense else "Latency of each exchange"
    plot = _PLOT.format(legend="" if is_dense else _LEGEND, label=label)
    return Drawing([Markup(f'<p class="note">{_DENSITY if is_dense else _DOTS}</p>'), Markup(plot)])


def cards(figures: Figures, lacks: list[Lack]) -> Iterator[Block]:
    """Yield the six figures that say most of a capture."""
    apis = {row["api"]: row for row in figures.apis}
    if figures.exchanges:
        found = [
            Card(f"{figures.exchanges:,}", f"exchanges in {_duration(figures)}"),
            _failed(figures),
            *_latencies(figures, apis),
            *_rebalances(figures),
            _complete(lacks),
        ]
        yield Cards(found)


def subtitle(figures: Figures) -> str:
    """Return when the capture was made, and of what."""
    connections = len(figures.reading.streams.connections)
    clients = {(row["client_id"], row["client"]) for row in figures.uses}
    brokers = {row["broker"] for row in figures.uses}
    begin, end = time_us(figures.begin_ns), time_us(figures.end_ns)
    words = (
        f"{begin} to {end}" if figures.exchanges else "no exchanges",
        _count(figures.reading.packets, "packet"),
        _count(connections, "connection"),
        _count(len(clients), "client"),
        _count(len(brokers), "broker"),
    )
    return ", ".join(words)


def _duration(figures: Figures) -> str:
    return duration(figures.end_ns - figures.begin_ns)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"


def _failed(figures: Figures) -> Card:
    errors = sum(row["errors"] for row in figures.apis)
    unanswered = sum(row["unanswered"] for row in figures.apis)
    words = f"with errors ({errors / figures.exchanges:.1%})" if errors else "with errors"
    more = f", {unanswered:,} without a response" if unanswered else ""
    mood: Mood = "bad" if errors or unanswered else "good"
    return Card(f"{errors:,}", words + more, mood)


def _latencies(figures: Figures, apis: Mapping[str, Mapping[str, Any]]) -> Iterator[Card]:
    """Yield the latency of Produce, then that of fetches, or those of the most frequent APIs."""
    names = [name for name in ("Produce", "Fetch") if name in apis]
    names += [name for name in apis if name and name not in names]
    fetches = [each for each in figures.dots.dots if each.api in ("Fetch", "ShareFetch")]
    for name in names[:2]:
        empty = sum(each.is_empty for each in fetches)
        if name == "Fetch" and empty:
            yield Card(f"{empty:,} of {len(fetches):,}", "fetches brought no records")
        elif (row := apis[name])["p50_ms"] is not None:
            text = f"{row['p50_ms']:,.3g} / {row['max_ms']:,.0f} ms"
            yield Card(text, f"{name}: median / longest")


def _rebalances(figures: Figures) -> Iterator[Card]:
    if figures.followed.most == 0:
        return
    events = [each for each in figures.events.retained("group") if each.event == "rebalance"]
    counts = figures.events.counts
    count = sum(number for (_, event, _), number in counts.items() if event == "rebalance")
    longest = max((each.end_ns - each.time_ns for each in events), default=0)
    words = f"rebalance{'s' * (count != 1)}" + (f", longest {duration(longest)}" if count else "")
    part = f", in the first {figures.followed.count:,} exchanges"
    yield Card(f"{count:,}", words + (part if figures.followed.is_cut else ""))


def _complete(lacks: list[Lack]) -> Card:
    missing = [each for each in lacks if each.count]
    if not missing:
        return Card("complete", "no packet lost, no TLS unread", "good")
    return Card("incomplete", ", ".join(f"{each.count:,} {each.what}" for each in missing), "bad")
