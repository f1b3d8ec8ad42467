"""Tables of events and findings: events, findings of conformance, the upgrade check."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from conform.registry.verdict import Verdict
from conform.report.verdict_text import location_text, side_text
from dissector.summary import upgrade_check
from dissector.view.document.content import Notes, Table
from report.gather.figures import Figures
from report.page.data_table import TableMaker
from report.page.lanes import css_class
from report.page.safe_text import time_us
from timeline.events.event import KINDS, Event
from timeline.events.words import MAX_LISTED, duration, ranges

_TITLES = {
    "group": "Events of groups",
    "producer": "Events of producers",
    "transaction": "Events of transactions",
    "consumer": "Events of consumers",
    "connection": "Events of connections",
    "cluster": "Events of the cluster",
}
_EVENT = ("time", "lasts", "subject", "event", "cause", "count", "text", "packets", "certain")
_COUNTED = ("kind", "event", "cause", "events")
_FINDING = ("severity", "rule", "title", "findings", "side", "found", "where", "expected")


def event_counts(figures: Figures, maker: TableMaker) -> Table:
    """Return a table with the number of events by name and cause."""
    rows = [
        {"kind": kind, "event": event, "cause": cause, "events": count}
        for (kind, event, cause), count in figures.events.counts.most_common()
    ]
    return maker.table("events", "Events by name", _COUNTED, rows, is_open=True)


def event_tables(figures: Figures, maker: TableMaker) -> Iterator[Table]:
    """Yield the retained events of each kind."""
    most = replace(maker, most=len(KINDS) * maker.most)
    row = partial(_event_row, figures.reading.source.places_text)
    for kind in KINDS:
        events = figures.events.retained(kind)
        if not events:
            continue
        table = most.table(f"events-{kind}", _TITLES[kind], _EVENT, map(row, events))
        more = figures.events.total(kind) - len(table.rows)
        yield replace(table, more=more)


def event_interval(row: Mapping[str, Any], begin_ns: int) -> tuple[float, float]:
    """Return begin and end of an event, in seconds since the begin of the plots."""
    return (row["time_ns"] - begin_ns) / 1e9, (row["end_ns"] - begin_ns) / 1e9


def _event_row(places: Callable[[Iterable[int]], str], event: Event) -> dict[str, Any]:
    took_ns, files = event.end_ns - event.time_ns, places(event.packets)
    return {
        "time_ns": event.time_ns,
        "end_ns": event.end_ns,
        "time": time_us(event.time_ns),
        "lasts": duration(took_ns) if took_ns else "",
        "subject": event.subject,
        "event": event.event,
        "cause": event.cause,
        "count": event.count,
        "text": event.text,
        "packets": ranges(event.packets, MAX_LISTED) + (f" ({files})" if files else ""),
        "certain": event.certain,
        "mood": css_class(event),
    }


def finding_table(verdict: Verdict, maker: TableMaker) -> Table:
    """Return the findings, merged if equal, the worst first."""
    rows = []
    for kind in verdict:
        first = kind.first
        rows.append(
            {
                "severity": str(first.severity),
                "rule": first.rule.id,
                "title": first.rule.title,
                "findings": kind.count,
                "side": side_text(first),
                "found": first.found,
                "where": location_text(first),
                "expected": first.rule.asks,
                "mood": "bad" if first.severity == "error" else "",
            }
        )
    return maker.table("findings", "Findings", _FINDING, rows, is_open=True)


def upgrade_tables(figures: Figures, maker: TableMaker) -> Iterator[Notes | Table]:
    """Yield a sentence and a table each for an upgrade of brokers and of clients."""
    release = figures.wishes.release
    for subject, breaking, report, columns in (
        ("clients", "break with brokers", figures.check_clients(), upgrade_check.CLIENT_COLUMNS),
        (
            *("brokers", "are too old for clients"),
            *(figures.check_brokers(), upgrade_check.BROKER_COLUMNS),
        ),
    ):
        count = f"{report.broken:,} of {report.subjects:,} {subject}"
        table = _upgrade_table(subject, report.rows, columns, maker)
        yield Notes([f"{count} {breaking} of Kafka {release}."])
        yield table


def _upgrade_table(
    subject: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], maker: TableMaker
) -> Table:
    marked = [
        {**row, "mood": "bad" if row["verdict"] == upgrade_check.BREAKS else ""} for row in rows
    ]
    title = f"Versions of {subject} without support"
    return maker.table(f"upgrade-{subject}", title, columns, marked)
