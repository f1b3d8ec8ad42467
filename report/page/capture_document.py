"""The content of a report on a capture."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from dissector.view.document.content import (
    Block,
    Document,
    Facts,
    Notes,
    PageParts,
    Section,
    Table,
)
from dissector.view.document.html_form import asset, json_for_script
from findings.gather.capture_lacks import Lack, kafka_states, lacks, tls_reasons, why_empty
from findings.gather.covered_part import Part
from report.gather.figures import Figures
from report.page.data_table import TableMaker
from report.page.dot_data import density_data, dot_data
from report.page.drawings import lanes_drawing, plots_drawing
from report.page.finding_tables import (
    event_counts,
    event_interval,
    event_tables,
    finding_table,
    upgrade_tables,
)
from report.page.first_page import cards, latency_drawing, stands_out, subtitle
from report.page.lanes import lanes
from report.page.plot_data import plot_data
from report.page.safe_text import SafeText, counted_bytes, first_words, time_us
from report.page.traffic_tables import (
    broker_table,
    error_table,
    exchange_interval,
    extreme_tables,
    lag_tables,
    software_table,
    totals_tables,
    user_table,
    value_table,
)
from timeline.events.words import duration, mask_of

_ASSETS = Path(__file__).parent / "assets"
_NOTHING = (
    "Nothing could be judged: no exchange can be read. Figures, events, conformance and the "
    "upgrade check are left out."
)
_LANES = {"group": "Groups", "transaction": "Transactions", "producer": "Producers"}


def capture_document(figures: Figures) -> Document:
    """Return the report on a capture."""
    safe = SafeText(mask_of(figures.capture, figures.wishes.show_secrets))
    plots: dict[str, Any] = figures.sections.run(
        "time",
        lambda: plot_data(figures.bins, figures.begin_ns, safe, figures.lags.courses()),
        {"x": []},
    )
    nothing: dict[str, Any] = {}
    plots |= figures.sections.run("latency", lambda: _latency(figures, safe), nothing)
    name = safe.text(first_words([Path(each).name for each in figures.capture.paths]))
    return Document(
        f"Kafka in {name}",
        f"Kafka in {name}",
        _sections(figures, safe, has_plots=bool(plots["x"])),
        page=PageParts(
            styles=[asset(_ASSETS / each) for each in ("uPlot.min.css", "report.css")],
            scripts=[
                asset(_ASSETS / each)
                for each in (
                    *("uPlot.iife.min.js", "report_plots.js", "report_dots.js", "report_totals.js"),
                )
            ],
            data=json_for_script(plots),
        ),
        subtitle=figures.sections.run("totals", lambda: subtitle(figures), ""),
    )


def _sections(figures: Figures, safe: SafeText, *, has_plots: bool) -> list[Section]:
    """Return all sections; of one that failed there is a note."""
    maker = TableMaker(safe)
    of_exchange = TableMaker(safe, partial(exchange_interval, begin_ns=figures.begin_ns))
    of_event = TableMaker(safe, partial(event_interval, begin_ns=figures.begin_ns))
    works: dict[str, tuple[str, Callable[[], Iterable[Block]]]] = {
        "overview": ("overview", lambda: cards(figures, found)),
        "stands-out": ("findings", lambda: stands_out(figures)),
        "lanes": ("events", lambda: _lanes(figures, safe)),
        "totals": (
            "totals",
            lambda: chain(
                broker_table(figures, maker),
                totals_tables(figures, maker),
                [error_table(figures, maker)],
            ),
        ),
        "exchanges": ("exchanges", lambda: extreme_tables(figures, of_exchange)),
        "happened": ("events", lambda: _events(figures, safe, of_event)),
        "lag": ("lag", lambda: lag_tables(figures, maker)),
        "use": ("use", lambda: _uses(figures, maker)),
        "values": ("values", lambda: _values(figures, maker)),
        "conformance": ("conformance", lambda: _conformance(figures, safe, maker)),
        "upgrade": ("upgrade", lambda: upgrade_tables(figures, maker)),
    }
    kafka = kafka_states(figures.reading)
    found = lacks(figures.reading, kafka, figures.problems)
    blocks: dict[str, list[Block]] = {}
    for name, (section, work) in works.items():
        # What comes before a failure stays.
        made: list[Block] = []
        figures.sections.run(section, partial(_append, made, work), None)
        blocks[name] = made
    # The notes are complete after all others.
    notes = figures.sections.notes

    def noted(name: str, *sections: str) -> list[Block]:
        said = [notes[each] for each in sections if each in notes]
        found = [each for each in blocks.get(name, ()) if _says_something(each)]
        if name and not found and not said:
            found = [Notes(["The capture has nothing of this."])]
        return [Notes(said, mood="bad"), *found]

    lane_blocks = blocks["lanes"]
    time = [*noted("", "time"), *([plots_drawing()] if has_plots else ())]
    capture = Section("capture", "Capture", list(_capture(figures, safe, found, len(kafka))))
    if not figures.exchanges and not notes:
        return [capture, Section("left-out", "Everything else", [Notes([_NOTHING], mood="bad")])]
    latency = [*noted("", "latency"), *([latency_drawing(figures)] if has_plots else ())]
    return [
        Section("overview", "Overview", noted("overview", "totals", "overview")),
        Section("stands-out", "What stands out", noted("stands-out", "findings")),
        *([Section("latency", "Latency", latency)] if has_plots else ()),
        *(
            [Section("lanes", "Groups, transactions, producers", lane_blocks)]
            if lane_blocks
            else ()
        ),
        capture,
        *([Section("time", "Over time", time)] if has_plots or "time" in notes else ()),
        Section("totals", "Totals", noted("totals", "totals")),
        Section("exchanges", "Exchanges", noted("exchanges", "exchanges")),
        Section("happened", "Events", noted("happened", "events")),
        Section("lag", "Lag of groups", noted("lag", "lag")),
        Section("use", "Use of topics", noted("use", "totals", "use")),
        Section("values", "Values", noted("values", "values")),
        Section("conformance", "Conformance", noted("conformance", "conformance")),
        Section("upgrade", "Upgrade", noted("upgrade", "totals", "upgrade")),
    ]


def _append(made: list[Block], work: Callable[[], Iterable[Block]]) -> None:
    for block in work():
        made.append(replace(block, lines=list(block.lines)) if isinstance(block, Notes) else block)


def _says_something(block: Block) -> bool:
    match block:
        case Notes(lines):
            return bool(lines)
        case Table():
            return bool(block.rows)
    return True


def _latency(figures: Figures, safe: SafeText) -> dict[str, Any]:
    """Return the data of the plot of latencies."""
    if figures.dots.is_full:
        return {"density": density_data(figures.bins, figures.begin_ns)}
    return {"dots": dot_data(figures.dots, figures.begin_ns, safe)}


def _capture(
    figures: Figures, safe: SafeText, found: Sequence[Lack], kafka: int
) -> Iterator[Block]:
    """Yield what the capture is, and how complete it is."""
    if empty := why_empty(figures.reading):
        yield Notes([safe.text(empty)], mood="bad")
    yield Facts([(what, safe.text(value)) for what, value in _facts(figures, kafka)])
    missing = [f"{each.count:,} {each.what}: {each.meaning}" for each in found if each.count]
    title = "How complete it is"
    yield Notes(map(safe.text, missing), title, "bad")
    whole = [f"no {each.what}" for each in found if not each.count]
    yield Notes(
        [f"Complete: {', '.join(whole)}"] if whole else [], "" if missing else title, "good"
    )
    yield Notes(
        f"TLS: {count:,} connections: {reason}"
        for reason, count in tls_reasons(figures.reading).items()
    )


def _events(figures: Figures, safe: SafeText, maker: TableMaker) -> Iterator[Block]:
    yield Notes(filter(None, [_part_text(figures.followed, "--events")]))
    yield event_counts(figures, TableMaker(safe))
    yield from event_tables(figures, maker)


def _lanes(figures: Figures, safe: SafeText) -> Iterator[Block]:
    """Yield the lanes of each kind; before them, which part they cover."""
    followed, span_s = figures.followed, max((figures.end_ns - figures.begin_ns) / 1e9, 1e-6)
    until_s = (followed.until_ns - figures.begin_ns) / 1e9 if followed.is_cut else span_s
    is_first = True
    for kind, title in _LANES.items():
        found, more = lanes(figures.events.retained(kind), figures.begin_ns, safe)
        if found:
            if is_first:
                yield Notes(filter(None, [_part_text(followed, "--events")]))
            is_first = False
            yield lanes_drawing(title, found, more, span_s, until_s)


def _uses(figures: Figures, maker: TableMaker) -> Iterator[Block]:
    yield user_table(figures, maker)
    yield software_table(figures, maker)


def _values(figures: Figures, maker: TableMaker) -> Iterator[Block]:
    yield Notes(filter(None, [_part_text(figures.decoded, "--records")]))
    yield value_table(figures, maker)


def _conformance(figures: Figures, safe: SafeText, maker: TableMaker) -> Iterator[Block]:
    yield Notes(filter(None, [_judged_text(figures)]))
    if (verdict := figures.verdict) is not None:
        yield Notes([safe.text(str(verdict))])
        yield finding_table(verdict, maker)


def _facts(figures: Figures, kafka: int) -> Iterator[tuple[str, str]]:
    """Yield the description of the capture."""
    names = figures.capture.paths
    rows = figures.apis
    yield ("capture" if len(names) == 1 else "captures"), first_words(names, 5)
    if figures.source.filter is not None:
        yield "filter", figures.source.filter.text
    if figures.exchanges:
        yield "first request", time_us(figures.begin_ns)
        yield "last response", time_us(figures.end_ns)
        yield "lasts", duration(figures.end_ns - figures.begin_ns)
    yield "packets", f"{figures.reading.packets:,}"
    total = len(figures.reading.streams.connections)
    yield "connections", f"{total:,}, {kafka:,} of them Kafka"
    yield "exchanges", f"{figures.exchanges:,}"
    yield "with errors", f"{sum(row['errors'] for row in rows):,}"
    yield "unanswered", f"{sum(row['unanswered'] for row in rows):,}"
    for side in ("request", "response"):
        total = sum(row[f"{side}_bytes"] for row in rows)
        yield f"{side}s", counted_bytes(total)


def _part_text(part: Part, option: str) -> str:
    """Describe the part of the capture in a section; empty for all of it."""
    if not part.is_cut:
        return ""
    if not part.count:
        return f"Left out by {option} 0."
    return (
        f"The first {part.count:,} exchanges only, to {time_us(part.until_ns)}; "
        f"{option} all covers all of them."
    )


def _judged_text(figures: Figures) -> str:
    if figures.source.filter is not None:
        return "Left out with -Y: rules need all messages."
    return _part_text(figures.judged, "--conform")
