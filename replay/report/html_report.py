"""The report as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import islice
from typing import Any

from dissector.view.text.escape import escaped
from dissector.view.text.value_text import json_text
from replay.model.row import Row
from replay.options.difference_baseline import BY_FILE, BY_GAP, BY_UPGRADE
from replay.report.counters import ApiCounters
from replay.report.headline import about_rows, verdict_line
from replay.report.results import Results
from replay.report.text_report import (
    ACCEPTED,
    INCOMPLETE,
    NOT_BALANCED,
    SHARED_LOGS,
    STALE,
    TRIALS,
    UPGRADE,
    apis_text,
    copies,
    difference_heading,
    fields_accepted_by,
    latencies,
    not_balanced,
    shared_with_parts,
    verdict_columns,
)

SHOWN = 500
"""Number of differences with a separate section."""

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #2a7d3a; --bad: #c0392b; --blue: #2f6fb0 }
body { font: 14px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 92em; padding: 0 1em }
h1 { font-size: 1.5em } h2 { font-size: 1.15em; margin-top: 2em }
.good { color: var(--good) } .bad { color: var(--bad) }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .2em .7em; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top }
td.n, th.n { text-align: right }
td.zero { opacity: .35 }
code, pre { font: 12px/1.4 ui-monospace, monospace; overflow-wrap: anywhere; margin: 0;
  white-space: pre-wrap }
td { overflow-wrap: anywhere; max-width: 30em }
table.facts th { font-weight: 600; white-space: nowrap }
table.facts td { max-width: 76em }
td.n, th.n { white-space: nowrap }
details { border-bottom: 1px solid var(--line); padding: .3em 0 } summary { cursor: pointer }
.sides { display: grid; grid-template-columns: 1fr 1fr; gap: 1em; padding: .4em 0 .6em 1.2em }
.sides h3 { font-size: .85em; margin: 0; opacity: .7 }
.plots { display: flex; flex-wrap: wrap; gap: 1em }
figure { margin: 0 } figcaption { font-weight: 600 }
svg text { font: 10px system-ui, sans-serif; fill: currentColor }
"""

_PERCENTILES = ("p50", "p95", "p99", "max")
_ELSEWHERE = frozenset({"target", "passed", "ended", "steps"})
"""Summary fields of the headline, or included in other numbers."""

_WIDTH, _HEIGHT, _LEFT, _BELOW = 300, 150, 58, 22
_MARKS = {50: "middle", 90: "end", 99: "middle"}


def html_lines(report: Results, shown: int = SHOWN) -> Iterator[str]:
    """
    Yield the lines of the page.

    Args:
        report: The report.
        shown: Number of differences with a separate section.
    """
    yield "<!doctype html>"
    yield f'<html lang="en"><meta charset="utf-8"><title>Replay to {_text(report.target)}</title>'
    yield f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
    yield f'<h1 class="{"good" if report.passed else "bad"}">{_text(verdict_line(report))}</h1>'
    yield from _facts("Replay", about_rows(report))
    yield from _facts("Summary", _summary(report))
    yield from _table(TRIALS, report.trials)
    yield from _lags(report)
    yield from _table("Responses", verdict_columns(report))
    yield from _table("Latency in ms, captured and replayed", latencies(report, _PERCENTILES))
    yield from _table("Copies", copies(report))
    yield from _table("Latency above the limit", report.limit_rows())
    yield from _table("Left out", _reasons(report.left_out_rows()))
    yield from _table("Sent, response not awaited", _reasons(report.not_judged_rows()))
    yield from _table("No response", _reasons(report.failure_rows()))
    yield from _table("Left behind on the target", report.left_behind_rows())
    yield from _table(NOT_BALANCED, not_balanced(report))
    yield from _table(SHARED_LOGS, shared_with_parts(report))
    first = "Differences by field, the first at the top"
    yield from _table(first, [_field_row(row) for row in fields_accepted_by(report)])
    yield from _differences(report, shown)
    by_no_fault = ((UPGRADE, BY_UPGRADE), (INCOMPLETE, BY_GAP), (ACCEPTED, BY_FILE))
    for heading, by in by_no_fault:
        yield from _table(heading, [_field_row(row) for row in fields_accepted_by(report, by)])
    yield from _table(STALE, report.stale_rows())
    yield from _table("Why responses are equivalent", _reasons(report.reason_rows()))
    yield from _plots(report)
    yield from _table("Sent in another version", report.version_rows())
    yield from _table("Substituted", report.change_rows())
    yield from _table("Ignored", report.ignored_rows())
    yield from _table("Completeness of the captured connections", report.connection_rows())
    yield "</html>"


def _summary(report: Results) -> list[Row]:
    """Return the summary fields that are not empty or zero, one row for each."""
    summary = report.summary()
    names = [name for name in summary if name not in _ELSEWHERE and not name.startswith("lag_")]
    return [
        {"what": name.replace("_", " "), "value": summary[name]}
        for name in names
        if summary[name] not in (None, "", 0)
    ]


def _lags(report: Results) -> Iterator[str]:
    late = report.lags.row("lag")
    if late["lag_max_ms"]:
        percentiles = {name.removeprefix("lag_"): value for name, value in late.items()}
        yield from _table("How much later than planned requests were sent", [percentiles])


def _reasons(rows: Sequence[Row]) -> list[Row]:
    return [{**row, "apis": apis_text(row["apis"])} for row in rows]


def _field_row(row: Row) -> Row:
    first = row["examples"][0]
    return {
        "count": row["count"],
        "first step": row["first_step"],
        "field": row["field"],
        "captured, for instance": first["captured"],
        "replayed": first["replayed"],
    }


def _facts(heading: str, rows: Sequence[Row]) -> Iterator[str]:
    """Yield a two-column table of names and values."""
    yield f'<h2>{_text(heading)}</h2><table class="facts">'
    for row in rows:
        yield f"<tr><th>{_text(row['what'])}</th><td>{_value(row['value'])}</td></tr>"
    yield "</table>"


def _table(heading: str, rows: Sequence[Row]) -> Iterator[str]:
    if not rows:
        return
    names = list(rows[0])
    numeric = {n for n in names if all(_is_number(row[n]) for row in rows)}
    yield f'<h2>{_text(heading)}</h2><div class="wide"><table><tr>'
    for name in names:
        yield f"<th{_class('n' if name in numeric else '')}>{_text(name.replace('_', ' '))}</th>"
    yield "</tr>"
    for row in rows:
        cells = "".join(_cell(row[name], name in numeric) for name in names)
        yield f"<tr>{cells}</tr>"
    yield "</table></div>"


def _cell(value: Any, is_number: bool) -> str:
    kinds = ["n"] * is_number + ["zero"] * (is_number and not value)
    return f"<td{_class(' '.join(kinds))}>{_value(value)}</td>"


def _class(names: str) -> str:
    return f' class="{names}"' if names else ""


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _value(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:,.3f}"
        case int():
            return f"{value:,}"
        case str():
            return _text(value)
        case _:
            return f"<code>{_text(json_text(value))}</code>"


def _differences(report: Results, shown: int) -> Iterator[str]:
    total = report.difference_count - report.accepted_count
    if not total:
        return
    count = f"the first {shown:,} of {total:,}" if total > shown else f"{total:,}"
    yield f"<h2>Differences, {count}</h2>"
    for row in islice((row for row in report.differences() if not row["accepted"]), shown):
        path = _text(row["path"]) or "response"
        yield f"<details><summary><code>{path}</code> {_text(difference_heading(row))}</summary>"
        yield f'<div class="sides">{_side(row, "captured")}{_side(row, "replayed")}</div></details>'


def _side(row: Row, name: str) -> str:
    value = row[name]
    shown = _text(value) if isinstance(value, str) else _text(json_text(value))
    return f"<div><h3>{name}</h3><pre>{shown}</pre></div>"


def _plots(report: Results) -> Iterator[str]:
    """Yield a latency plot for each API."""
    apis = [(name, known) for name, known in sorted(report.apis.items()) if len(known.replayed)]
    if not apis:
        return
    yield "<h2>Latency: captured (grey) and replayed (blue)</h2>"
    yield '<div class="plots">'
    for name, known in apis:
        yield f"<figure><figcaption>{_text(name)}</figcaption>{_plot(known)}</figure>"
    yield "</div>"


def _plot(counters: ApiCounters) -> str:
    """Return the latency in ms by percentile as two lines: captured and replayed."""
    lines = [
        [times.ms(percent) or 0.0 for percent in range(1, 101)] if len(times) else []
        for times in (counters.captured, counters.replayed)
    ]
    top = max(max(line, default=0.0) for line in lines) or 1.0
    width, height = _WIDTH - _LEFT - 16, _HEIGHT - _BELOW - 8
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img">',
        f'<path d="M{_LEFT} 8V{8 + height}H{_LEFT + width}" fill="none" stroke="currentColor" '
        'opacity=".4"/>',
        f'<text x="{_LEFT - 4}" y="14" text-anchor="end">{duration_text(top)}</text>',
        f'<text x="{_LEFT - 4}" y="{8 + height}" text-anchor="end">0</text>',
    ]
    for mark, anchor in _MARKS.items():
        at = _LEFT + width * mark / 100
        parts.append(
            f'<text x="{at:.0f}" y="{_HEIGHT - 6}" text-anchor="{anchor}">p{mark}</text>'
            f'<path d="M{at:.0f} 8v{height}" stroke="currentColor" opacity=".12"/>'
        )
    for line, colour in zip(lines, ("#888", "var(--blue)"), strict=True):
        points = " ".join(
            f"{_LEFT + width * at / 100:.1f},{8 + height * (1 - value / top):.1f}"
            for at, value in enumerate(line, 1)
        )
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"/>'
        )
    return "".join([*parts, "</svg>"])


def duration_text(ms: float) -> str:
    """Return a duration, short enough for an axis label."""
    seconds = ms / 1000
    if ms < 999.5:
        return f"{ms:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 999.5 else f"{seconds:,.0f} s"


def _text(text: str) -> str:
    return escape(escaped(text))
