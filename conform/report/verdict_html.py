"""A verdict as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from conform.registry.verdict import Cause, Verdict
from conform.report.verdict_text import (
    count_text,
    fault_text,
    location_text,
    other_findings_text,
    request_bytes_text,
    side_text,
    summary_line,
)
from dissector.notebook_forms import register_form
from dissector.view.text.escape import escaped
from dissector.view.text.notebook import page_html

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --error: #c0392b; --warning: #b7791f;
  --note: #2f6fb0; --good: #2a7d3a }
body { font: 14px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 76em; padding: 0 1em }
h1 { font-size: 1.3em } h2 { font-size: 1.1em; margin-top: 2em }
.error { color: var(--error) } .warning { color: var(--warning) } .note { color: var(--note) }
.good { color: var(--good) }
details { border-bottom: 1px solid var(--line); padding: .4em 0 } summary { cursor: pointer }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2em 1em; margin: .5em 1.2em }
dt { opacity: .7 } dd { margin: 0; overflow-wrap: anywhere }
code { font: 12px/1.4 ui-monospace, monospace }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .2em .7em; border-bottom: 1px solid var(--line); text-align: left;
  vertical-align: top }
td.n, th.n { text-align: right }
"""


def html_lines(verdict: Verdict, subject: str) -> Iterator[str]:
    """Yield the lines of the page."""
    css_class = "error" if verdict.fails else "good"
    yield "<!doctype html>"
    title = f"Conformance of {_escape_text(subject)}"
    yield f'<html lang="en"><meta charset="utf-8"><title>{title}</title>'
    yield f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style>'
    yield f'<h1 class="{css_class}">{_escape_text(summary_line(verdict, subject))}</h1>'
    for heading, known in (("Findings", False), ("In the baseline", True)):
        causes = [cause for cause in verdict.causes() if cause.kind.known is known]
        if causes:
            yield f"<h2>{heading}</h2>"
        for cause in causes:
            yield from _cause_lines(cause)
    if verdict.not_read:
        yield "<h2>Not judged</h2>"
        yield from (f"<p>{_escape_text(each)}</p>" for each in verdict.not_read)
    if verdict.faults:
        yield "<h2>Bugs in kafkashark: please report them</h2>"
        for fault in verdict.faults.values():
            yield f"<p>{_escape_text(fault_text(fault))}</p>"
    yield from _rule_rows(verdict)
    yield "</html>"


def _cause_lines(cause: Cause) -> Iterator[str]:
    kind = cause.kind
    first = kind.first
    rule = first.rule
    yield (
        f'<details open><summary><b class="{first.severity}">{first.severity} {rule.id}</b> '
        f"{_escape_text(rule.title)}, {count_text(kind.count)}, {first.rank}</summary><dl>"
    )
    yield f"<dt>expected</dt><dd>{_escape_text(rule.asks)}</dd>"
    for finding in kind.findings:
        yield f"<dt>found</dt><dd>{_escape_text(finding.found)}</dd>"
        place = _escape_text(location_text(finding))
        yield f"<dt>where</dt><dd>{_escape_text(side_text(finding))}: <code>{place}</code></dd>"
        if finding.request:
            yield f"<dt>sent</dt><dd><code>{request_bytes_text(finding.request)}</code></dd>"
    if cause.others:
        yield f"<dt>also</dt><dd>{_escape_text(other_findings_text(cause))}</dd>"
    yield f"<dt>source</dt><dd>{_escape_text(rule.source)}</dd></dl></details>"


def _rule_rows(verdict: Verdict) -> Iterator[str]:
    yield '<h2>Rules</h2><div class="wide"><table><tr><th>rule</th><th>title</th><th>rank</th>'
    yield '<th class="n">judged</th><th class="n">broken</th><th>not judged</th></tr>'
    for rule in verdict.rules:
        tally = verdict.tallies[rule.id]
        reasons = "; ".join(f"{n:,}: {reason}" for reason, n in tally.unjudged.most_common())
        yield (
            f"<tr><td>{rule.id}</td><td>{_escape_text(rule.title)}</td><td>{rule.rank}</td>"
            f'<td class="n">{tally.judged:,}</td>'
            f'<td class="n">{tally.broken:,}</td><td>{_escape_text(reasons)}</td></tr>'
        )
    yield "</table></div>"


def _escape_text(text: str) -> str:
    return escape(escaped(text))


def _notebook_html(verdict: Verdict) -> str:
    return page_html("Verdict", html_lines(verdict, ", ".join(verdict.captures)))


register_form(Verdict, _notebook_html)
