"""The report as text for people, and as lines of JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from dissector.view.escape import escaped
from dissector.view.table import table_lines
from dissector.view.values import json_text
from replay.report import Report
from replay.tallies import Row

SHOWN = 20
"""In so many fields differences are told one by one to people; ndjson has all."""

_LEFT_TO_FILES = ("captured_max_ms", "replayed_max_ms")
"""Columns that a terminal has no room for."""

_LONGEST = 120

_NAMED = 4

SECTIONS = (
    "api",
    "left_out",
    "failure",
    "remains",
    "version",
    "change",
    "ignored",
    "place",
    "connection",
    "difference",
)
"""Sections of the ndjson report, after the summary, in their order."""


def ndjson_lines(report: Report) -> Iterator[str]:
    """Yield the report as JSON, a line for each fact: `section` says of what kind it is."""
    yield json_text({"section": "summary", **report.summary()})
    rows: Mapping[str, Iterable[Row]] = {
        "api": report.api_rows(),
        "left_out": report.left_out_rows(),
        "failure": report.failure_rows(),
        "remains": report.remains_rows(),
        "version": report.version_rows(),
        "change": report.change_rows(),
        "ignored": report.ignored_rows(),
        "place": report.place_rows(),
        "connection": report.connection_rows(),
        "difference": report.differences(),
    }
    for section in SECTIONS:
        for row in rows[section]:
            yield json_text({"section": section, **row})


def text_lines(
    report: Report, shown: int = SHOWN, terminal_width: int | None = None
) -> Iterator[str]:
    """
    Yield the report for people.

    Args:
        report: The report.
        shown: In how many fields differences are told one by one.
        terminal_width: Where the output is a terminal: longer lines are cut there.
    """
    yield from _summary(report)
    tables = (
        ("Per API", _apis(report)),
        ("Left out", report.left_out_rows()),
        ("No answer", report.failure_rows()),
        ("Left behind on the target", report.remains_rows()),
        ("Sent in another version", report.version_rows()),
        ("Substituted", _changes(report)),
        ("Ignored", [row for row in report.ignored_rows() if row["count"]]),
        ("Incomplete connections", [r for r in report.connection_rows() if r["score"] < 1]),
        ("Differences by field", _places(report)),
    )
    for heading, rows in tables:
        yield from _table(heading, rows, terminal_width)
    yield from _differences(report, shown)


def verdict_line(report: Report) -> str:
    """Return the verdict in one line."""
    told = report.summary()
    if report.ended:
        return f"{escaped(report.target)}: ended early: {escaped(report.ended)}"
    if not report.passed:
        count = report.failing
        return (
            f"{escaped(report.target)}: {count:,} of {told['steps']:,} answers "
            f"differ{'s' * (count == 1)} from what was captured"
        )
    return f"{escaped(report.target)}: answers as captured"


def _summary(report: Report) -> Iterator[str]:
    told = report.summary()
    yield verdict_line(report)
    yield ""
    answers = ["same", "equivalent", "differs", "error_changed", "missing", "extra"]
    answers += ["incomplete"] if told["incomplete"] else []
    shown = ", ".join(f"{told[name]:,} {name.replace('_', ' ')}" for name in answers)
    split = f", {told['split']:,} of them to several brokers" if told["split"] else ""
    yield f"requests  {told['steps']:,} captured, {told['requests_sent']:,} sent{split}"
    yield f"answers   {shown}"
    if told["lacking"]:
        yield f"lacking   {told['lacking']:,} of those that fail may follow from what was left out"
    if told["incomplete"]:
        yield "incomplete  they differ, and go by records or members that the capture lacks"
    rate = f", {told['requests_per_s']:,} requests/s" if told["requests_per_s"] else ""
    yield f"time      {told['elapsed_s']:,} s{rate}"
    if told["lag_max_ms"]:
        lags = ", ".join(
            f"{name} {told[f'lag_{name}_ms']:.3f} ms" for name in ("p50", "p95", "p99", "max")
        )
        yield f"late      {lags}"


def _table(heading: str, rows: Sequence[Row], width: int | None) -> Iterator[str]:
    if rows:
        yield ""
        yield heading
        yield from table_lines(rows, list(rows[0]), terminal_width=width)


def _apis(report: Report) -> list[Row]:
    """Return the rows of APIs without the columns in which nothing is."""
    rows = report.api_rows()
    empty = {name for name in (rows[0] if rows else ()) if not any(row[name] for row in rows)}
    empty.update(_LEFT_TO_FILES)
    return [{name: row[name] for name in row if name not in empty} for row in rows]


def _changes(report: Report) -> list[Row]:
    return [
        {
            "role": row["role"],
            "rule": row["rule"],
            "count": row["count"],
            "captured": value_text(row["captured"], 40),
            "sent": value_text(row["sent"], 40),
            "for instance": row["path"],
        }
        for row in report.change_rows()
    ]


def _places(report: Report) -> list[Row]:
    return [
        {
            "count": row["count"],
            "place": row["place"],
            "captured": value_text(row["examples"][0]["captured"], 40),
            "replayed": value_text(row["examples"][0]["replayed"], 40),
        }
        for row in report.place_rows()
    ]


def _differences(report: Report, shown: int) -> Iterator[str]:
    rows = [row for place in report.place_rows()[:shown] for row in place["examples"]]
    if not rows:
        return
    yield ""
    total = report.difference_count
    what = f"{len(rows):,} of {total:,} differences" if total > len(rows) else "Differences"
    yield what
    for row in rows:
        yield f"  {difference_heading(row)}"
        yield f"    {escaped(row['path']) or 'answer'}"
        yield f"      captured  {value_text(row['captured'])}"
        yield f"      replayed  {value_text(row['replayed'])}"


def difference_heading(row: Row) -> str:
    """Return which request a difference belongs to."""
    sent = row["version_sent"]
    version = f"v{row['api_version']}" + (f" sent as v{sent}" if sent != row["api_version"] else "")
    who = escaped(row["client_id"] or row["client"])
    copy = f", pass {row['copy']}" if row["copy"] else ""
    lacks = f"; may follow from {_some(row['lacks'])}, left out" if row["lacks"] else ""
    return (
        f"step {row['step']}: {row['api']} {version} of {who}, connection {row['connection']}, "
        f"id {row['correlation_id']}{copy}{lacks}"
    )


def _some(names: list[str]) -> str:
    """Return names, or the first of them and how many there are."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return escaped(", ".join(names[:_NAMED])) + more


def value_text(value: Any, longest: int = _LONGEST) -> str:
    """Return one side of a difference; null where it is not there."""
    text = escaped(value) if isinstance(value, str) else json_text(value)
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
