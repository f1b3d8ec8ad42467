"""The rows that a reader of captures asks for: those of some APIs, topics and times."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dissector.capture.columns import Int64s
from dissector.engine.exchanges.exchange import TOKEN
from dissector.engine.tables.exchange_table import NONE, Exchanges
from dissector.errors import UsageError, suggestion
from dissector.filter.time_literals import parse_time_ns
from dissector.protocol.apis import api_keys
from pipeline.storage.parquet_store import API, TIMES
from pipeline.tables.table_schemas import SCHEMAS

_UNNAMED_API = re.compile(r"api (-?[0-9]{1,5})")

_TOPICS = ("topic", "topics")
"""The columns of topics: of one, and of several in a row."""


@dataclass(frozen=True, slots=True)
class RowChoice:
    """
    Conditions that rows of one table meet.

    Null meets none of them, as in SQL. The time of a row is that of its date in written tables.

    Attributes:
        table: The table.
        apis: Names of APIs; empty: all.
        topics: Names of topics, of which a row has at least one; empty: all.
        since_ns: The first time; None: no limit.
        until_ns: The first time after; None: no limit.
    """

    table: str
    apis: frozenset[str] = frozenset()
    topics: frozenset[str] = frozenset()
    since_ns: int | None = None
    until_ns: int | None = None

    @classmethod
    def of(
        cls,
        table: str,
        apis: Iterable[str] = (),
        topics: Iterable[str] = (),
        since: str | None = None,
        until: str | None = None,
    ) -> RowChoice | None:
        """
        Return the conditions that texts give; None without any.

        Raises:
            UsageError: The table has no such column, or a name or time is none.
        """
        since_ns, until_ns = _time("since", since), _time("until", until)
        if since_ns is not None and until_ns is not None and since_ns >= until_ns:
            raise UsageError(f"until {until} is not after since {since}")
        choice = cls(table, frozenset(map(_api, apis)), frozenset(topics), since_ns, until_ns)
        if choice == cls(table):
            return None
        for option, asked, columns in (
            ("apis", choice.apis, (API,)),
            ("topics", choice.topics, _TOPICS),
            ("since" if since else "until", choice.has_times, TIMES),
        ):
            if asked and not set(columns) & {*SCHEMAS[table].names}:
                raise UsageError(f"table {table} has no column for {option}")
        return choice

    @property
    def has_times(self) -> bool:
        """Whether times are limited."""
        return self.since_ns is not None or self.until_ns is not None

    @property
    def columns(self) -> frozenset[str]:
        """The columns that tell whether a row meets the conditions."""
        asked = ((API,), self.apis), (_TOPICS, self.topics), (TIMES, self.has_times)
        named = {name for columns, is_asked in asked if is_asked for name in columns}
        return frozenset(named & {*SCHEMAS[self.table].names})

    def may_have(self, first_ns: int, last_ns: int) -> bool:
        """Return whether a row may meet them whose time is one of these."""
        begins = self.until_ns is None or first_ns < self.until_ns
        return begins and (self.since_ns is None or last_ns >= self.since_ns)

    def exchanges(self, table: Exchanges) -> Exchanges:
        """Return the exchanges whose rows may meet them, before columns are made."""
        may = np.ones(len(table), bool)
        if self.apis:
            # Rows tell tokens from other exchanges without a key.
            keys = [_key(name) for name in self.apis if name != TOKEN]
            may &= np.isin(table.api_key, [*keys, NONE])
        if self.has_times:
            sides = (table.request, table.response)
            may &= np.any([self._is_in_time(each.time_ns) for each in sides], axis=0)
        return table if may.all() else table.rows(np.flatnonzero(may))

    def _is_in_time(self, times: Int64s) -> NDArray[np.bool_]:
        inside = np.ones(len(times), bool)
        if self.since_ns is not None:
            inside &= times >= self.since_ns
        if self.until_ns is not None:
            inside &= times < self.until_ns
        return inside

    def rows(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that meet them, of finished ones."""
        if self.apis:
            batch = batch.filter(pc.is_in(batch.column(API), pa.array(sorted(self.apis))))
        if self.topics:
            batch = batch.filter(self._has_topic(batch))
        if self.has_times:
            times = pc.coalesce(*(batch.column(name) for name in TIMES if name in self.columns))
            inside = pc.is_valid(times)
            if self.since_ns is not None:
                inside = pc.and_(inside, pc.greater_equal(times, self.since_ns))
            if self.until_ns is not None:
                inside = pc.and_(inside, pc.less(times, self.until_ns))
            batch = batch.filter(inside)
        return batch

    def _has_topic(self, batch: pa.RecordBatch) -> pa.Array:
        wanted = pa.array(sorted(self.topics))
        if "topic" in batch.schema.names:
            return pc.is_in(batch.column("topic"), wanted)
        topics = batch.column("topics")
        rows = pc.list_parent_indices(topics).filter(pc.is_in(pc.list_flatten(topics), wanted))
        has_one = np.zeros(len(batch), bool)
        has_one[rows.to_numpy()] = True
        return pa.array(has_one)


def _key(name: str) -> int:
    unnamed = _UNNAMED_API.fullmatch(name)
    return int(unnamed[1]) if unnamed else api_keys()[name]


def _api(name: str) -> str:
    """Return the name of an API as rows have it."""
    known = {each.casefold(): each for each in (*api_keys(), TOKEN)}
    found = known.get(name.casefold())
    if found is None and not _UNNAMED_API.fullmatch(name):
        raise UsageError(f"no API is called {name}{suggestion(name, known.values())}")
    return found or name


def _time(option: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return parse_time_ns(text)
    except ValueError:
        raise UsageError(f"{option} takes a time as 2026-11-26T10:42:30Z, not {text!r}") from None
