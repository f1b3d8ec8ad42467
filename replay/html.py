"""The report as one page that needs nothing beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from dissector.view.escape import escaped
from dissector.view.values import json_text
from replay.report import Report
from replay.tallies import OfApi, Row
from replay.text import difference_heading, verdict_line

SHOWN = 500
"""So many differences are told one by one."""

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #2a7d3a; --bad: #c0392b; --blue: #2f6fb0 }
body { font: 14px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 76em; padding: 0 1em }
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
details { border-bottom: 1px solid var(--line); padding: .3em 0 } summary { cursor: pointer }
.sides { display: grid; grid-template-columns: 1fr 1fr; gap: 1em; padding: .4em 0 .6em 1.2em }
.sides h3 { font-size: .85em; margin: 0; opacity: .7 }
.plots { display: flex; flex-wrap: wrap; gap: 1em }
figure { margin: 0 } figcaption { font-weight: 600 }
svg text { font: 10px system-ui, sans-serif; fill: currentColor }
"""

_WIDTH, _HEIGHT, _LEFT, _BELOW = 300, 150, 52, 22
_MARKS = (50, 90, 99)


def html_lines(report: Report, shown: int = SHOWN) -> Iterator[str]:
    """
    Yield the lines of the page.

    Args:
        report: The report.
        shown: How many differences are told one by one.
    """
    yield "<!doctype html>"
    yield f'<html lang="en"><meta charset="utf-8"><title>Replay to {_text(report.target)}</title>'
    yield f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
    yield f'<h1 class="{"good" if report.passed else "bad"}">{_text(verdict_line(report))}</h1>'
    summary = {name: value for name, value in report.summary().items() if value is not None}
    late = {name: value for name, value in summary.items() if name.startswith("lag_")}
    yield from _table("Summary", [{name: summary[name] for name in summary if name not in late}])
    if late.get("lag_max_ms"):
        percentiles = {name.removeprefix("lag_"): value for name, value in late.items()}
        yield from _table("How much later than planned requests were sent", [percentiles])
    yield from _table("Per API", report.api_rows())
    yield from _plots(report)
    yield from _table("Left out", report.left_out_rows())
    yield from _table("No answer", report.failure_rows())
    yield from _table("Left behind on the target", report.remains_rows())
    yield from _table("Differences by field", [_place(row) for row in report.place_rows()])
    yield from _differences(report, shown)
    yield from _table("Sent in another version", report.version_rows())
    yield from _table("Substituted", report.change_rows())
    yield from _table("Ignored", report.ignored_rows())
    yield from _table("Completeness of the captured connections", report.connection_rows())
    yield "</html>"


def _place(row: Row) -> Row:
    first = row["examples"][0]
    return {
        "count": row["count"],
        "place": row["place"],
        "captured, for instance": first["captured"],
        "replayed": first["replayed"],
    }


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


def _differences(report: Report, shown: int) -> Iterator[str]:
    total = report.difference_count
    if not total:
        return
    count = f"the first {shown:,} of {total:,}" if total > shown else f"{total:,}"
    yield f"<h2>Differences, {count}</h2>"
    for row in report.differences(shown):
        path = _text(row["path"]) or "answer"
        yield f"<details><summary><code>{path}</code> {_text(difference_heading(row))}</summary>"
        yield f'<div class="sides">{_side(row, "captured")}{_side(row, "replayed")}</div></details>'


def _side(row: Row, name: str) -> str:
    value = row[name]
    shown = _text(value) if isinstance(value, str) else _text(json_text(value))
    return f"<div><h3>{name}</h3><pre>{shown}</pre></div>"


def _plots(report: Report) -> Iterator[str]:
    """Yield how long answers took, for each API."""
    apis = [(name, known) for name, known in sorted(report.apis.items()) if len(known.replayed)]
    if not apis:
        return
    yield "<h2>How long answers took: captured (grey) and replayed (blue)</h2>"
    yield '<div class="plots">'
    for name, known in apis:
        yield f"<figure><figcaption>{_text(name)}</figcaption>{_plot(known)}</figure>"
    yield "</div>"


def _plot(known: OfApi) -> str:
    """Return the latency in ms at each percentile, as two lines."""
    lines = [
        [times.ms(percent) or 0.0 for percent in range(1, 101)] if len(times) else []
        for times in (known.captured, known.replayed)
    ]
    top = max(max(line, default=0.0) for line in lines) or 1.0
    width, height = _WIDTH - _LEFT - 8, _HEIGHT - _BELOW - 8
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img">',
        f'<path d="M{_LEFT} 8V{8 + height}H{_LEFT + width}" fill="none" stroke="currentColor" '
        'opacity=".4"/>',
        f'<text x="{_LEFT - 4}" y="14" text-anchor="end">{top:.3g} ms</text>',
        f'<text x="{_LEFT - 4}" y="{8 + height}" text-anchor="end">0</text>',
    ]
    for mark in _MARKS:
        at = _LEFT + width * mark / 100
        parts.append(
            f'<text x="{at:.0f}" y="{_HEIGHT - 6}" text-anchor="middle">p{mark}</text>'
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


def _text(text: str) -> str:
    return escape(escaped(text))
