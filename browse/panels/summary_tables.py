"""Statistics, conversations and groups as tables, each row with the filter of its exchanges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from browse.filtering.filter_texts import literal
from browse.panels.table_panel import Row, Table, TablePanel, with_share
from dissector.summary.group_keys import ORPHAN
from dissector.summary.groups_reader import SECTIONS as GROUP_SECTIONS
from dissector.summary.lag_intervals import LAG_SECTIONS
from dissector.summary.sections import NAMED
from dissector.summary.statistics import GROUPS, Grouping

Sections = Mapping[str, Sequence[Mapping[str, Any]]]

STATISTICS: Mapping[str, Grouping] = {
    **GROUPS,
    "errors": Grouping(("error", "api"), ("counts", "latencies")),
    "talkers": NAMED["talkers"][1],
}
"""The tables of statistics, as sections of `kafkashark stats`."""

_TITLES = {
    "apis": "APIs",
    "clients": "Clients",
    "topics": "Topics",
    "brokers": "Brokers",
    "errors": "Errors",
    "talkers": "Conversations",
}
_NO_SUM = {"errors": ("errors",)}
"""Columns that would repeat another one."""
_TESTS = {
    "api": ("api",),
    "client_id": ("client_id",),
    "client": ("ip.src",),
    "topic": ("topic",),
    "broker": ("broker",),
    "error": ("error",),
    "group": ("kafka.consumer_group", "kafka.coordinator_key"),
    "member_id": ("kafka.member_id",),
    "partition": ("kafka.partition_id",),
}
"""Columns that name a row, and the names in filters that they are compared with."""
_NAMING = {
    "groups": ("group",),
    "members": ("group", "member_id"),
    "partitions": ("group", "topic", "partition"),
    "lags": ("group",),
    "partition_lags": ("group", "topic", "partition"),
}


def stats_panel(sections: Sections, health: Mapping[str, int]) -> TablePanel:
    """Return a panel with statistics: rows by section of `STATISTICS`, and counters."""
    tables = [
        with_share(
            Table(
                _TITLES[name],
                tuple(each for each in grouping.columns if each not in _NO_SUM.get(name, ())),
                sections.get(name, ()),
                partial(_filter_of, [each for each in grouping.columns if each in _TESTS]),
            ),
            "count",
        )
        for name, grouping in STATISTICS.items()
    ]
    counters = [
        {"counter": name.replace("_", " "), "count": count} for name, count in health.items()
    ]
    return TablePanel("Statistics", [*tables, Table("Capture", ("counter", "count"), counters)])


def groups_panel(sections: Sections) -> TablePanel:
    """Return a panel with the output of `kafkashark groups`: rows by section."""
    tables = [
        Table(title, columns, sections.get(name, ()), partial(_filter_of, _NAMING[name]))
        for name, (title, columns) in {**GROUP_SECTIONS, **LAG_SECTIONS}.items()
    ]
    return TablePanel("Groups", tables, none="no group in the capture")


def _filter_of(names: Sequence[str], row: Row) -> str:
    """Return the filter of a row by the columns that name it."""
    return " and ".join(
        f"status == {ORPHAN}"
        if name == "api" and row.get(name) == ORPHAN
        else _tests(_TESTS[name], row.get(name))
        for name in names
    )


def _tests(names: Sequence[str], value: object) -> str:
    tests = [f"not {name}" if value is None else f"{name} == {literal(value)}" for name in names]
    return tests[0] if len(tests) == 1 else f"({' or '.join(tests)})"
