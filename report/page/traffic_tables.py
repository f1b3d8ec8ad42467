"""Tables of the traffic: totals, errors, extreme exchanges, users of topics, software."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dissector.summary.group_totals import MEASURES
from dissector.summary.software_guess import guess_software
from dissector.view.document.content import Table
from report.gather.figures import Figures
from report.page.data_table import TableMaker
from report.page.safe_text import time_us

_TOTALS = (
    *("count", "errors", "unanswered"),
    *("min_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms", "request_bytes", "response_bytes"),
)
_NAMES = {
    "apis": ("APIs", ("api",)),
    "clients": ("Clients", ("client_id", "client")),
    "topics": ("Topics", ("topic",)),
    "brokers": ("Brokers", ("broker",)),
}
"""Section of statistics -> title, and columns that identify a row."""

_EXCHANGE = (
    *("time", "api", "api_version", "latency_ms", "request_bytes", "response_bytes"),
    *("client_id", "topics", "errors", "status", "request_packet", "response_packet"),
    *("client", "broker"),
)
_USERS = (
    *("topic", "api", "api_version", "client_id", "client", "software"),
    *("count", "errors", "unanswered", "request_bytes", "response_bytes"),
)
_SOFTWARE = (
    *("client_id", "client", "software", "from", "brokers", "APIs"),
    *("count", "errors", "unanswered"),
)

_VALUES = (
    *("topic", "part", "schema", "format", "before", "records", "undecoded", "problem"),
    *("writers", "readers", "first packet", "from", "to"),
)

_LAGS = ("group", "lag", "highest", "at", "members", "note")
_PARTITION_LAGS = (
    *("group", "topic", "partition", "committed", "high_watermark"),
    *("lag", "highest", "at", "note"),
)

_CLIENT = ("client_id", "client", "software_name", "software_version")

Row = Mapping[str, Any]


def totals_tables(figures: Figures, maker: TableMaker) -> Iterator[Table]:
    """Yield the tables of `stats`, with equal numbers."""
    for section, (title, names) in _NAMES.items():
        is_open = section in ("apis", "topics")
        rows, total = figures.first_rows(section, maker.most)
        table = maker.table(section, title, (*names, *_TOTALS), rows, _marked, is_open=is_open)
        yield replace(table, more=total - len(rows))


def broker_table(figures: Figures, maker: TableMaker) -> Iterator[Table]:
    """Yield the parts of the broker's time per API, if the capture has request logs."""
    if figures.capture.has_logs:
        rows, total = figures.first_rows("broker_times", maker.most)
        columns = ("api", "count", *MEASURES["broker_times"])
        note = (
            "What the broker's request log says: queue, its own work, waiting for others "
            "(followers, members, new records), quotas, queue of responses, sending."
        )
        title = "Where the time goes"
        table = maker.table("broker_times", title, columns, rows, is_open=True, note=note)
        yield replace(table, more=total - len(rows))


def error_table(figures: Figures, maker: TableMaker) -> Table:
    """Return the number of errors by API and error code."""

    def counted(row: Row) -> Row:
        return {**row, "exchanges": row["count"]}

    rows, total = figures.first_rows("errors", maker.most)
    columns = ("error", "api", "exchanges")
    table = maker.table("errors", "Errors", columns, rows, counted, is_open=True)
    return replace(table, more=total - len(rows))


def extreme_tables(figures: Figures, maker: TableMaker) -> Iterator[Table]:
    """Yield the slowest and the largest exchanges."""
    for name, title, rows in (
        ("failed", "Exchanges with errors", figures.failed.rows),
        ("slowest", "Slowest exchanges", figures.slowest.rows),
        ("largest", "Largest exchanges", figures.largest.rows),
    ):
        shown = [_marked({**row, "time": time_us(_begin_ns(row))}) for row in rows]
        yield maker.table(name, title, _EXCHANGE, shown, is_open=name != "largest")


def exchange_interval(row: Row, begin_ns: int) -> tuple[float, float]:
    """Return begin and end of an exchange, in seconds since the begin of the plots."""
    begin, end = _begin_ns(row), row["response_time_ns"] or _begin_ns(row)
    return (begin - begin_ns) / 1e9, (end - begin_ns) / 1e9


def _begin_ns(row: Row) -> int:
    begin_ns: int = row["request_time_ns"] or row["response_time_ns"] or 0
    return begin_ns


def _marked(row: Row) -> dict[str, Any]:
    return {**row, "mood": "bad" if row["errors"] else ""}


def user_table(figures: Figures, maker: TableMaker) -> Table:
    """Return the clients of each topic, by API and version."""

    def named(row: Row) -> Row:
        return {**row, "software": _software(row)[0]}

    rows, total = figures.first_rows("users", maker.most)
    table = maker.table("users", "Topics and their clients", _USERS, rows, named, is_open=True)
    return replace(table, more=total - len(rows))


def value_table(figures: Figures, maker: TableMaker) -> Table:
    """Return the formats and schemas of the records of topics."""

    def named(row: Row) -> Row:
        times = {"from": time_us(row["first_time_ns"]), "to": time_us(row["last_time_ns"])}
        mood = {"mood": "bad" if row["undecoded"] else ""}
        return {**row, "first packet": row["first_packet"], **times, **mood}

    note = "Formats and schemas of keys and values; `before` is what was used earlier."
    rows = figures.value_uses.rows()
    title = "Formats and schemas"
    return maker.table("topic_schemas", title, _VALUES, rows, named, note=note, is_open=True)


def lag_tables(figures: Figures, maker: TableMaker) -> Iterator[Table]:
    """Yield the lag of groups, and of their partitions, at the end and at its highest."""
    note = "The high watermark less the committed offset, as `groups --interval` has it over time."
    lags = figures.lags
    yield maker.table("lags", "Groups", _LAGS, lags.groups(), _lagging, note=note, is_open=True)
    yield maker.table("partition_lags", "Partitions", _PARTITION_LAGS, lags.partitions(), _lagging)


def _lagging(row: Row) -> dict[str, Any]:
    return {**row, "mood": "bad" if row["note"] else ""}


def software_table(figures: Figures, maker: TableMaker) -> Table:
    """Return the software of each client."""
    rows = sorted(_software_rows(figures.uses), key=lambda row: -row["count"])
    note = (
        "Clients state their software in ApiVersions from version 3 on; for others it is derived "
        "from the client id."
    )
    return maker.table("software", "Software of clients", _SOFTWARE, rows, note=note)


def _software_rows(uses: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """Yield a row for each client and software."""
    found: dict[tuple[Any, ...], list[Row]] = {}
    for use in uses:
        key = tuple(use[name] for name in _CLIENT)
        found.setdefault(key, []).append(use)
    for own in found.values():
        software, source = _software(own[0])
        yield {
            **{name: own[0][name] for name in ("client_id", "client")},
            "software": software,
            "from": source,
            "brokers": len({each["broker"] for each in own}),
            "APIs": len({each["api"] for each in own}),
            **{name: _sum(own, name) for name in ("count", "errors", "unanswered")},
        }


def _software(row: Row) -> tuple[str, str]:
    """Return the software of a client, and the source of that information."""
    named = " ".join(filter(None, (row["software_name"], row["software_version"])))
    if named:
        return named, "ApiVersions"
    guess = guess_software(row["client_id"])
    return (guess, "client id") if guess else ("", "")


def _sum(rows: Sequence[Row], name: str) -> int:
    return sum(row[name] for row in rows)
