"""The content of the report on a replay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from dissector.view.document.content import (
    Block,
    Card,
    Cards,
    Document,
    Facts,
    Finding,
    Findings,
    Mood,
    Section,
    table_of,
)
from replay.compare.step_verdict import FAILING_VERDICTS
from replay.model.outcome import Verdict
from replay.model.row import Row
from replay.options.difference_baseline import BY_FILE, BY_GAP, BY_UPGRADE
from replay.report.latency_plots import latency_plots
from replay.report.report_rows import documented_fields, fields_accepted_by
from replay.report.report_words import (
    about_rows,
    apis_text,
    difference_heading,
    first_names,
    unbalanced_rows,
    value_text,
    verdict_line,
    verdict_parts,
)
from replay.report.results import Results

MAX_FIELDS = 20
"""Number of fields whose differences a text lists; a page lists differences."""

MAX_DIFFERENCES = 500
"""Number of differences that a page lists; ndjson has all."""

_RARE_VERDICTS = (Verdict.ACCEPTED, Verdict.INCOMPLETE, Verdict.NOT_JUDGED)
"""Verdicts that are omitted if no response has them."""

UPGRADE = "Changed by the upgrade: fails nothing"
INCOMPLETE = "Differences caused by gaps in the capture, or by other parts of it: fail nothing"
ACCEPTED = "Accepted differences: fail nothing"
DOCUMENTED = "Documented for this target (--target-profile): fail nothing"
STALE = "Accepted, but no longer found"
NOT_BALANCED = "Records not balanced: losses there are not found"
UNSUPPORTED = "The target cannot do this"
TRIALS = "Trials: the tables below are those of the speed that was found, or of the last"
SHARED_LOGS = "Logs that other parts write to: balanced by --merge"
LATENCY = "Latency in ms, captured and replayed"

_SHORT, _LONG = 32, 40
"""Characters of values from messages in a text."""


def replay_text(report: Results, max_fields: int = MAX_FIELDS) -> Document:
    """Return the report for a terminal: what is short; differences last."""
    sections = [
        Section("summary", "Summary", _summary(report)),
        Section("responses", "Responses", _responses(report, ("p50", "p95", "p99"))),
        Section("requests", "Requests", _requests(report)),
        Section("rewritten", "Rewritten", _rewritten(report, is_page=False)),
        Section("accepted", "Accepted", _accepted(report, is_page=False)),
        Section("differences", "Differences", _differences(report, max_fields)),
    ]
    return Document(_title(report), verdict_line(report), sections)


def replay_page(report: Results, max_differences: int = MAX_DIFFERENCES) -> Document:
    """Return the report for a page: with plots and all columns; differences first."""
    differences = _all_differences(report, max_differences)
    plots = latency_plots(report.apis)
    sections = [
        Section("summary", "Summary", [_figures(report), *_summary(report)]),
        Section("responses", "Responses", _responses(report, ("p50", "p95", "p99", "max"))),
        Section("requests", "Requests", _requests(report)),
        *([Section("differences", "Differences", differences)] if report.difference_count else ()),
        Section("accepted", "Accepted", _accepted(report, is_page=True)),
        *([Section("latency", "Latency", [plots])] if plots else ()),
        Section("rewritten", "Rewritten", _rewritten(report, is_page=True)),
    ]
    mood: Mood = "good" if report.passed else "bad"
    headline, *others = verdict_parts(report)
    return Document(_title(report), headline, sections, mood, subtitle="; ".join(others))


def _title(report: Results) -> str:
    return f"Replay to {report.target}"


def _summary(report: Results) -> Iterator[Block]:
    yield Facts([(row["what"], row["value"]) for row in about_rows(report)])
    yield Facts(list(_totals(report)))


def _figures(report: Results) -> Cards:
    """Return what a reader of the page should see first."""
    summary, failing, unsent = report.summary(), report.failing, report.captured - report.replayed
    return Cards(
        [
            Card(f"{report.replayed:,}", f"of {report.captured:,} requests sent"),
            Card(f"{failing:,}", "responses differ", "bad" if failing else "good"),
            Card(f"{summary['unsupported']:,}", "requests that the target cannot do"),
            Card(f"{unsent:,}", "requests left out or never reached"),
            Card(f"{summary['elapsed_s']:,} s", "time of the replay"),
        ]
    )


def _totals(report: Results) -> Iterator[tuple[str, str]]:
    """Yield requests, responses, time and lag of the whole replay."""
    summary = report.summary()
    passes = f" in {summary['passes']:,} passes" if summary["passes"] > 1 else ""
    passes += f" of {summary['copies']:,} copies" if summary["copies"] > 1 else ""
    split = f", {summary['split']:,} of them to several brokers" if summary["split"] else ""
    yield (
        "requests",
        f"{summary['captured']:,} captured, {summary['sent']:,} sent{split}, "
        f"{summary['left_out']:,} left out, {summary['never_reached']:,} never reached{passes}",
    )
    shown = (
        f"{summary[verdict.value]:,} {verdict.value.replace('_', ' ')}"
        for verdict in Verdict
        if verdict is not Verdict.LEFT_OUT
        and (summary[verdict.value] or verdict not in _RARE_VERDICTS)
    )
    yield "responses", ", ".join(shown)
    if missing := summary["missing_prerequisites"]:
        yield "missing", f"prerequisites of {missing:,} failing responses were left out"
    if summary["first_difference"]:
        yield "first", summary["first_difference"]
    rate = summary["requests_per_s"]
    speed = f", {rate:,} requests/s" if rate is not None else ""
    yield "time", f"{summary['elapsed_s']:,} s{speed}"
    if summary["lag_max_ms"]:
        lags = (f"{name} {summary[f'lag_{name}_ms']:.3f} ms" for name in _PERCENTILES)
        yield "late", ", ".join(lags)


_PERCENTILES = ("p50", "p95", "p99", "max")


def _tables(*named: tuple[str, Sequence[Row]]) -> Iterator[Block]:
    for title, rows in named:
        yield from table_of(title, rows)


def _responses(report: Results, percentiles: Sequence[str]) -> Iterator[Block]:
    yield from _tables(
        (TRIALS, report.trials),
        ("Responses", _verdicts(report)),
        (LATENCY, _latencies(report, percentiles)),
        ("Copies", _copies(report)),
        ("Latency above the limit", report.limit_rows()),
    )


def _requests(report: Results) -> Iterator[Block]:
    yield from _tables(
        (UNSUPPORTED, list(report.unsupported.shown())),
        ("Left out", _reasons(report.left_out_rows())),
        ("Sent, response not awaited", _reasons(report.not_judged_rows())),
        ("No response", _reasons(report.failure_rows())),
        ("Left behind on the target", report.left_behind_rows()),
        (NOT_BALANCED, unbalanced_rows(report.unbalanced_rows())),
        (SHARED_LOGS, _shared_with_parts(report)),
    )


def _rewritten(report: Results, *, is_page: bool) -> Iterator[Block]:
    ignored = [row for row in report.ignored_rows() if is_page or row["count"]]
    connections = [row for row in report.connection_rows() if is_page or row["score"] < 1]
    heading = "Completeness of the captured connections" if is_page else "Incomplete connections"
    yield from _tables(
        ("Equivalent responses", _reasons(report.reason_rows())),
        ("Sent in another version", report.version_rows()),
        ("Substituted", _changes(report, is_page=is_page)),
        ("Ignored", [_with_column_last(row, "pattern") for row in ignored]),
        (heading, connections),
    )


def _accepted(report: Results, *, is_page: bool) -> Iterator[Block]:
    documented = documented_fields(report)
    rows = _fields(documented, is_page=is_page)
    yield from table_of(
        DOCUMENTED,
        [{**row, "source": each["source"]} for row, each in zip(rows, documented, strict=True)],
    )
    for title, by in ((UPGRADE, BY_UPGRADE), (INCOMPLETE, BY_GAP), (ACCEPTED, BY_FILE)):
        yield from table_of(title, _fields(fields_accepted_by(report, by), is_page=is_page))
    yield from table_of(STALE, report.stale_rows())


def _verdicts(report: Results) -> list[Row]:
    """Return a row for each API, with a column for each verdict that occurs."""
    rows = report.api_rows()
    names = [each.value for each in Verdict if any(row[each.value] for row in rows)]
    return [
        {"api": row["api"], **{name.replace("_", " "): row[name] for name in names}} for row in rows
    ]


def _latencies(report: Results, percentiles: Sequence[str]) -> list[Row]:
    """Return a row for each API with responses: each percentile as captured and replayed."""
    return [
        {
            "api": row["api"],
            **{
                f"{percentile} {side}": row[f"{side}_{percentile}_ms"]
                for percentile in percentiles
                for side in ("captured", "replayed")
            },
            "p99 ratio": _ratio(row["replayed_p99_ms"], row["captured_p99_ms"]),
        }
        for row in report.api_rows()
        if row["replayed_max_ms"] is not None
    ]


def _ratio(replayed: float | None, captured: float | None) -> float | None:
    """Return how many times as long the replayed responses took; None without captured ones."""
    return round(replayed / captured, 2) if replayed is not None and captured else None


def _copies(report: Results) -> list[Row]:
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
            **{name: row[f"replayed_{name}_ms"] for name in _PERCENTILES},
            "late max": row["lag_max_ms"],
        }
        for row in (rows if len(rows) > 1 else ())
    ]


def _reasons(rows: Iterable[Row]) -> list[Row]:
    """Return rows of reasons with their APIs abbreviated; the longest column comes last."""
    return [
        {
            **{name: row[name] for name in ("count", "by") if name in row},
            "apis": apis_text(row["apis"]),
            "reason": row["reason"],
        }
        for row in rows
    ]


def _with_column_last(row: Row, name: str) -> Row:
    """Return a row with one column moved to the end, where its width does not matter."""
    return {**{each: row[each] for each in row if each != name}, name: row[name]}


def _changes(report: Results, *, is_page: bool) -> list[Row]:
    return [
        {
            "role": row["role"],
            "rule": row["rule"],
            "count": row["count"],
            "captured": _value(row["captured"], _LONG, is_page=is_page),
            "sent": _value(row["sent"], _LONG, is_page=is_page),
            "for instance": row["path"],
        }
        for row in report.change_rows()
    ]


def _shared_with_parts(report: Results) -> list[Row]:
    """Return the number of logs that other parts write to, and the first of them."""
    logs = sorted({f"{row['topic']}-{row['partition']}" for row in report.shared_logs})
    return [{"count": len(logs), "logs": first_names(logs)}] if logs else []


def _fields(rows: Iterable[Row], *, is_page: bool) -> list[Row]:
    return [
        {
            "count": row["count"],
            "first step": row["first_step"],
            "captured": _value(row["examples"][0]["captured"], _SHORT, is_page=is_page),
            "replayed": _value(row["examples"][0]["replayed"], _SHORT, is_page=is_page),
            "field": row["field"],
        }
        for row in rows
    ]


def _value(value: Any, max_length: int, *, is_page: bool) -> Any:
    """Return a value from a message: whole for a page, shortened for a text."""
    return value if is_page else value_text(value, max_length)


BY_FIELD = "Differences by field, the first at the top"


def _differences(report: Results, max_fields: int) -> Iterator[Block]:
    """Yield the differing fields, and examples of the first ones."""
    fields = fields_accepted_by(report)
    yield from table_of(BY_FIELD, _fields(fields, is_page=False))
    rows = [row for field in fields[:max_fields] for row in field["examples"]]
    total = sum(field["count"] for field in fields)
    title = f"{len(rows):,} of {total:,} differences" if total > len(rows) else "Differences"
    yield Findings((_finding(row, value_text) for row in rows), title)


def _all_differences(report: Results, most: int) -> Iterator[Block]:
    """Yield the differing fields, and the first differences."""
    yield from table_of(BY_FIELD, _fields(fields_accepted_by(report), is_page=True))
    total = report.difference_count - report.accepted_count
    if not total:
        return
    count = f"the first {most:,} of {total:,}" if total > most else f"{total:,}"
    rows = (row for row in report.differences() if not row["accepted"])
    yield Findings((_finding(row) for row in islice(rows, most)), f"Differences, {count}")


def _finding(row: Row, shown: Any = lambda value: value) -> Finding:
    parts: Mapping[str, Any] = {
        "field": row["path"] or "response",
        "captured": shown(row["captured"]),
        "replayed": shown(row["replayed"]),
    }
    return Finding(difference_heading(row), list(parts.items()))
