"""
The page of a report: one self-contained HTML file.

All text from a capture passes `SafeText`, then Jinja's escaping or JSON; the script sets text nodes
only. A content security policy allows only the page's own script and style, by hash.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dissector.errors import UsageError
from dissector.installation import extra_needed
from report.gather.capture_lacks import kafka_states, lacks, tls_reasons, why_empty
from report.gather.covered_part import Part
from report.gather.figures import Figures
from report.page.data_table import TableMaker
from report.page.finding_tables import (
    event_counts,
    event_interval,
    event_tables,
    finding_table,
    upgrade_tables,
)
from report.page.lanes import Lane, lanes
from report.page.plot_data import plot_data
from report.page.safe_text import SafeText, counted_bytes, first_words, time_us
from report.page.traffic_tables import (
    error_table,
    exchange_interval,
    extreme_tables,
    software_table,
    totals_tables,
    user_table,
)
from timeline.events.words import duration, mask_of

_FOLDER = Path(__file__).parent
_SCRIPTS = ("uPlot.iife.min.js", "report_plots.js", "report_tables.js")
_STYLES = ("uPlot.min.css", "report.css")
_LANES = {"group": "Groups", "transaction": "Transactions", "producer": "Producers"}

MISSING = extra_needed("report", "report")


def check_template_engine() -> None:
    """
    Check that Jinja2 is installed.

    Raises:
        UsageError: It is not installed.
    """
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise UsageError(MISSING) from None


def html_page(figures: Figures) -> str:
    """Return the page of a report."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(_FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    script, style = (_assets(names) for names in (_SCRIPTS, _STYLES))
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    return environment.get_template("report.html.j2").render(
        # Own files, without text from a capture.
        script=Markup(script),
        style=Markup(style),
        policy=policy,
        version=version("kafkashark"),
        **_content(figures),
    )


def _assets(names: Sequence[str]) -> str:
    texts = [(_FOLDER / "assets" / name).read_text(encoding="utf-8") for name in names]
    return "\n".join(texts)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def json_for_script(value: Any) -> str:
    """Return JSON that HTML parsers cannot take for markup, or the end of a script."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))  # escapes non-ASCII characters
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _content(figures: Figures) -> dict[str, Any]:
    """Return the values of the template."""
    from markupsafe import Markup

    safe = SafeText(mask_of(figures.capture, figures.wishes.show_secrets))
    kafka = kafka_states(figures.reading)
    plots: dict[str, Any] = figures.sections.run(
        "time", lambda: plot_data(figures.bins, figures.begin_ns, safe), {"x": []}
    )
    return {
        "name": safe.text(first_words([Path(each).name for each in figures.capture.paths])),
        "facts": [(what, safe.text(value)) for what, value in _facts(figures, len(kafka))],
        "empty": safe.text(why_empty(figures.reading)),
        "lacks": [
            replace(each, what=safe.text(each.what))
            for each in lacks(figures.reading, kafka, figures.problems)
        ],
        "tls": tls_reasons(figures.reading),
        "plots": Markup(json_for_script(plots)),
        "has_plots": bool(plots["x"]),
        "span": (0, max((figures.end_ns - figures.begin_ns) / 1e9, 1e-6)),
        "events_part": _part_text(figures.followed, "--events"),
        "judged_part": _judged_text(figures),
        **_tables(figures, safe),
        "notes": figures.sections.notes,  # complete after all others
    }


def _tables(figures: Figures, safe: SafeText) -> dict[str, Any]:
    """Return the tables and lanes; those of a failed section are empty."""
    maker = TableMaker(safe)
    of_exchange = TableMaker(safe, partial(exchange_interval, begin_ns=figures.begin_ns))
    of_event = TableMaker(safe, partial(event_interval, begin_ns=figures.begin_ns))
    verdict = figures.sections.run("conformance", lambda: figures.verdict, None)
    parts: list[tuple[str, str, Callable[[], Any]]] = [
        ("totals", "totals", lambda: list(totals_tables(figures, maker))),
        ("totals", "errors", lambda: [error_table(figures, maker)]),
        ("exchanges", "extremes", lambda: list(extreme_tables(figures, of_exchange))),
        ("use", "users", lambda: [user_table(figures, maker), software_table(figures, maker)]),
        ("events", "events", lambda: [event_counts(figures, maker)]),
        ("events", "event_tables", lambda: list(event_tables(figures, of_event))),
        ("events", "lanes", lambda: list(_lanes(figures, safe))),
        ("conformance", "findings", lambda: [finding_table(verdict, maker)] if verdict else []),
        ("upgrade", "upgrades", lambda: list(upgrade_tables(figures, maker))),
    ]
    tables: dict[str, Any] = {
        name: figures.sections.run(section, work, []) for section, name, work in parts
    }
    return tables | {"verdict": None if verdict is None else safe.text(str(verdict))}


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


def _lanes(figures: Figures, safe: SafeText) -> Iterator[tuple[str, list[Lane], int]]:
    for kind, title in _LANES.items():
        found, more = lanes(figures.events.retained(kind), figures.begin_ns, safe)
        if found:
            yield title, found, more


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
