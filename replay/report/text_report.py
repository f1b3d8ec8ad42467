"""The report as text for people, and as lines of JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from dissector.view.tables.row_formats import table_lines
from dissector.view.text.escape import escaped
from dissector.view.text.value_text import json_text
from replay.compare.step_verdict import FAILING_VERDICTS
from replay.model.outcome import Verdict
from replay.model.row import Row
from replay.options.difference_baseline import BY_FILE, BY_GAP, BY_UPGRADE
from replay.report.headline import about_rows, verdict_line
from replay.report.results import Results

MAX_SHOWN = 20
"""Number of fields with differences in the text report's list; ndjson has all."""

_MAX_TEXT = 120

_MAX_NAMES = 4

_MAX_APIS = 2

SECTIONS: Mapping[str, Callable[[Results], Iterable[Row]]] = {
    "about": lambda report: [report.about.row()],
    "api": lambda report: report.api_rows(),
    "copy": lambda report: report.copy_rows(),
    "trial": lambda report: report.trials,
    "limit": lambda report: report.limit_rows(),
    "left_out": lambda report: report.left_out_rows(),
    "not_judged": lambda report: report.not_judged_rows(),
    "failure": lambda report: report.failure_rows(),
    "left_behind": lambda report: report.left_behind_rows(),
    "not_balanced": lambda report: report.unbalanced_rows(),
    "version": lambda report: report.version_rows(),
    "change": lambda report: report.change_rows(),
    "ignored": lambda report: report.ignored_rows(),
    "reason": lambda report: report.reason_rows(),
    "upgrade": lambda report: fields_accepted_by(report, BY_UPGRADE),
    "incomplete": lambda report: fields_accepted_by(report, BY_GAP),
    "accepted": lambda report: fields_accepted_by(report, BY_FILE),
    "stale": lambda report: report.stale_rows(),
    "field": lambda report: fields_accepted_by(report),
    "connection": lambda report: report.connection_rows(),
    "latency": lambda report: report.latency_rows(),
    "shared_log": lambda report: report.shared_logs,
    "equivalent": lambda report: report.equivalents(),
    "difference": lambda report: report.differences(),
}
"""Sections of the ndjson report, after the summary, in their order."""

_RARE_VERDICTS = (Verdict.ACCEPTED, Verdict.INCOMPLETE, Verdict.NOT_JUDGED)
"""Verdicts that are omitted if no response has them."""

UPGRADE = "Changed by the upgrade: fails nothing"
INCOMPLETE = "Differences caused by gaps in the capture, or by other parts of it: fail nothing"
ACCEPTED = "Accepted differences: fail nothing"
STALE = "Accepted, but no longer found"
NOT_BALANCED = "Records not balanced: losses there are not found"
TRIALS = "Trials: the tables below are those of the speed that was found, or of the last"
SHARED_LOGS = "Logs that other parts write to: balanced by --merge"


def ndjson_lines(report: Results) -> Iterator[str]:
    """Yield the report as lines of JSON; `section` gives the kind of each row."""
    yield json_text({"section": "summary", "verdict": verdict_line(report), **report.summary()})
    for section, rows in SECTIONS.items():
        for row in rows(report):
            yield json_text({"section": section, **row})


def fields_accepted_by(report: Results, accepted: str = "") -> list[Row]:
    """Return the differing fields that `accepted` accepts; by default those not accepted."""
    return [row for row in report.field_rows() if row["accepted"] == accepted]


def text_lines(
    report: Results, shown: int = MAX_SHOWN, terminal_width: int | None = None
) -> Iterator[str]:
    """
    Yield the lines of the text report.

    Args:
        report: The report.
        shown: Number of fields with listed differences.
        terminal_width: Maximum width of lines; None if the output is not a terminal.
    """
    yield from _summary(report)
    tables = (
        (TRIALS, report.trials),
        ("Responses", _verdicts(report)),
        ("Latency in ms", latencies(report)),
        ("Copies", copies(report)),
        ("Latency above the limit", report.limit_rows()),
        ("Left out", _reasons(report.left_out_rows())),
        ("Sent, response not awaited", _reasons(report.not_judged_rows())),
        ("No response", _reasons(report.failure_rows())),
        ("Left behind on the target", report.left_behind_rows()),
        (NOT_BALANCED, not_balanced(report)),
        (SHARED_LOGS, shared_with_parts(report)),
        ("Equivalent responses", _reasons(report.reason_rows())),
        ("Sent in another version", report.version_rows()),
        ("Substituted", _changes(report)),
        (
            "Ignored",
            [_with_column_last(row, "pattern") for row in report.ignored_rows() if row["count"]],
        ),
        ("Incomplete connections", [r for r in report.connection_rows() if r["score"] < 1]),
        (UPGRADE, _field_rows(fields_accepted_by(report, BY_UPGRADE))),
        (INCOMPLETE, _field_rows(fields_accepted_by(report, BY_GAP))),
        (ACCEPTED, _field_rows(fields_accepted_by(report, BY_FILE))),
        (STALE, report.stale_rows()),
        ("Differences by field, the first at the top", _field_rows(fields_accepted_by(report))),
    )
    for heading, rows in tables:
        yield from _table(heading, rows, terminal_width)
    yield from _differences(report, shown)


def _summary(report: Results) -> Iterator[str]:
    summary = report.summary()
    yield verdict_line(report)
    yield ""
    for row in about_rows(report):
        yield f"{row['what']:<9} {row['value']}"
    yield ""
    passes = f" in {summary['passes']:,} passes" if summary["passes"] > 1 else ""
    passes += f" of {summary['copies']:,} copies" if summary["copies"] > 1 else ""
    split = f", {summary['split']:,} of them to several brokers" if summary["split"] else ""
    yield (
        f"requests  {summary['captured']:,} captured, {summary['sent']:,} sent{split}, "
        f"{summary['left_out']:,} left out, {summary['never_reached']:,} never reached{passes}"
    )
    shown = (
        f"{summary[verdict.value]:,} {verdict.value.replace('_', ' ')}"
        for verdict in Verdict
        if verdict is not Verdict.LEFT_OUT
        and (summary[verdict.value] or verdict not in _RARE_VERDICTS)
    )
    yield f"responses {', '.join(shown)}"
    if missing := summary["missing_prerequisites"]:
        yield f"missing   prerequisites of {missing:,} failing responses were left out"
    if summary["first_difference"]:
        yield f"first     {escaped(summary['first_difference'])}"
    rate = summary["requests_per_s"]
    speed = f", {rate:,} requests/s" if rate is not None else ""
    yield f"time      {summary['elapsed_s']:,} s{speed}"
    if summary["lag_max_ms"]:
        lags = ", ".join(
            f"{name} {summary[f'lag_{name}_ms']:.3f} ms" for name in ("p50", "p95", "p99", "max")
        )
        yield f"late      {lags}"


def _table(heading: str, rows: Sequence[Row], width: int | None) -> Iterator[str]:
    if rows:
        yield ""
        yield heading
        yield from table_lines(rows, list(rows[0]), terminal_width=width)


def verdict_columns(report: Results) -> list[Row]:
    """Return a row for each API, with a column for each verdict that occurs."""
    rows = report.api_rows()
    names = [each.value for each in Verdict if any(row[each.value] for row in rows)]
    return [{"api": row["api"], **{name: row[name] for name in names}} for row in rows]


def _verdicts(report: Results) -> list[Row]:
    return [
        {name.replace("_", " "): value for name, value in row.items()}
        for row in verdict_columns(report)
    ]


def latencies(report: Results, percentiles: Sequence[str] = ("p50", "p95", "p99")) -> list[Row]:
    """Return a row for each API with responses: each percentile as captured and replayed."""
    return [
        {
            "api": row["api"],
            **{
                f"{percentile} {side}": row[f"{side}_{percentile}_ms"]
                for percentile in percentiles
                for side in ("captured", "replayed")
            },
        }
        for row in report.api_rows()
        if row["replayed_max_ms"] is not None
    ]


def copies(report: Results) -> list[Row]:
    """Return a row for each copy of the capture; nothing if there is only one."""
    rows = report.copy_rows()
    return [
        {
            "names": f"{row['copy']}*",
            "after s": row["starts_after_s"],
            "sent": row["sent"],
            "failing": sum(row[verdict.value] for verdict in FAILING_VERDICTS),
            "not balanced": row["not_balanced"],
            "passed": row["passed"],
            **{name: row[f"replayed_{name}_ms"] for name in ("p50", "p95", "p99", "max")},
            "late max": row["lag_max_ms"],
        }
        for row in (rows if len(rows) > 1 else ())
    ]


def _reasons(rows: list[Row]) -> list[Row]:
    """Return rows of reasons with their APIs abbreviated; the longest column comes last."""
    return [
        {
            **{name: row[name] for name in ("count", "by") if name in row},
            "apis": apis_text(row["apis"]),
            "reason": row["reason"],
        }
        for row in rows
    ]


def apis_text(counts: Mapping[str, int]) -> str:
    """Return the first APIs with their counts, and the number of further ones."""
    named = [f"{api} {count:,}" for api, count in list(counts.items())[:_MAX_APIS]]
    more = len(counts) - _MAX_APIS
    return ", ".join(named) + (f" and {more:,} more" if more > 0 else "")


def _with_column_last(row: Row, name: str) -> Row:
    """Return a row with one column moved to the end, where its width does not matter."""
    return {**{each: row[each] for each in row if each != name}, name: row[name]}


def _changes(report: Results) -> list[Row]:
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


def not_balanced(report: Results) -> list[Row]:
    """Return the reasons why logs could not be balanced, each with the first such logs."""
    return [{**row, "logs": _first_names(row["logs"])} for row in report.unbalanced_rows()]


def shared_with_parts(report: Results) -> list[Row]:
    """Return the number of logs that other parts write to, and the first of them."""
    logs = sorted({f"{row['topic']}-{row['partition']}" for row in report.shared_logs})
    return [{"count": len(logs), "logs": _first_names(logs)}] if logs else []


def _field_rows(rows: list[Row]) -> list[Row]:
    return [
        {
            "count": row["count"],
            "first step": row["first_step"],
            "captured": value_text(row["examples"][0]["captured"], 32),
            "replayed": value_text(row["examples"][0]["replayed"], 32),
            "field": row["field"],
        }
        for row in rows
    ]


def _differences(report: Results, shown: int) -> Iterator[str]:
    fields = fields_accepted_by(report)
    rows = [row for field in fields[:shown] for row in field["examples"]]
    if not rows:
        return
    yield ""
    total = sum(field["count"] for field in fields)
    what = f"{len(rows):,} of {total:,} differences" if total > len(rows) else "Differences"
    yield what
    for row in rows:
        yield f"  {difference_heading(row)}"
        yield f"    {escaped(row['path']) or 'response'}"
        yield f"      captured  {value_text(row['captured'])}"
        yield f"      replayed  {value_text(row['replayed'])}"


def difference_heading(row: Row) -> str:
    """Return a heading that identifies the request of a difference."""
    if row["client"] is None:
        return f"step {row['step']}: {row['api']}, pass {row['pass']}, beside another part"
    if row["client"] is None:
        return f"step {row['step']}: {row['api']}, pass {row['pass']}, beside another part"
    sent = row["version_sent"]
    version = f"v{row['api_version']}" + (f" sent as v{sent}" if sent != row["api_version"] else "")
    who = escaped(row["client_id"] or row["client"])
    in_pass = f", pass {row['pass']}" if row["pass"] else ""
    missing = row["missing_prerequisites"]
    cause = f"; may follow from {_first_names(missing)}, left out" if missing else ""
    packet = "" if row["request_packet"] is None else f", packet {row['request_packet']}"
    # A report of an older release, which `--merge` reads, has no files.
    packet += f" ({escaped(file)})" if (file := row.get("request_place")) else ""
    return (
        f"step {row['step']}: {row['api']} {version} of {who}, connection {row['connection']}, "
        f"id {row['correlation_id']}{packet}{in_pass}{cause}"
    )


def _first_names(names: list[str]) -> str:
    """Return the first names, and the number of further ones."""
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return escaped(", ".join(names[:_MAX_NAMES])) + more


def value_text(value: Any, max_length: int = _MAX_TEXT) -> str:
    """Return one side of a difference as text; null if absent."""
    text = escaped(value) if isinstance(value, str) else json_text(value)
    return text if len(text) <= max_length else f"{text[: max_length - 1]}…"
