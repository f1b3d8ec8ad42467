"""A capture beside the request logs of the same time: what the broker says of each exchange."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dissector.column_catalogue import ACCOUNTS
from dissector.engine.exchanges.log_columns import ACCOUNT_COLUMNS
from dissector.engine.reading.capture import Capture, Options
from dissector.engine.tables.column_types import Coded, Column, Columns, Milliseconds
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.engine.tables.polars_tables import frame
from dissector.errors import UsageError

if TYPE_CHECKING:
    import polars

OUTSIDE = "outside_ms"
"""The part of a captured latency that is not the broker's: network and client."""

_KEYS = ("client", "broker", "api_key", "correlation_id")
_MOST_APART_NS = 600 * 10**9
"""A port may be used again later; clocks of hosts are not this far apart."""


class LogJoin:
    """
    Joins exchanges by connection, API and correlation id, and of several the nearest in time.

    Attributes:
        matched: Exchanges of the capture that the logs have, too.
        unmatched: Others of it.
    """

    def __init__(self, logs: Sequence[str], options: Options) -> None:
        """
        Read logs.

        Raises:
            CaptureError: One can't be read.
            UsageError: One is no request log.
        """
        capture = Capture(list(logs), replace(options, values=None))
        if not capture.has_logs:
            raise UsageError(f"--with {logs[0]}: not a request log of a broker")
        self.matched = self.unmatched = 0
        self._logged = _keyed(capture.exchanges())
        self._used: set[int] = set()

    @property
    def only_logged(self) -> int:
        """Exchanges of the logs that no exchange of the capture so far is."""
        return len(self._logged) - len(self._used)

    def parts(self, parts: Iterable[Columns]) -> Iterator[Columns]:
        """Yield rows of `pairs` with what the broker says of them."""
        return map(self._joined, parts)

    def _joined(self, columns: Columns) -> Columns:
        import polars as pl

        schema = {
            "client": pl.String,
            "broker": pl.String,
            "api_key": pl.Int16,
            "correlation_id": pl.Int32,
            "request_time_ns": pl.Int64,
            "response_time_ns": pl.Int64,
        }
        captured = _keyed(frame(columns, schema))
        found = captured.select("row", "time_ns", *_KEYS).join_asof(
            self._logged.rename({"row": "log_row"}),
            on="time_ns",
            by=list(_KEYS),
            strategy="nearest",
            tolerance=_MOST_APART_NS,
            check_sortedness=False,
        )
        found = found.sort("row")
        rows = found["log_row"].drop_nulls()
        self._used.update(rows.to_list())
        self.matched += len(rows)
        self.unmatched += len(found) - len(rows)
        return {**columns, **_account_columns(found, columns)}


def _keyed(exchanges: polars.DataFrame) -> polars.DataFrame:
    """Return exchanges with their numbers, in order of the time of their ends."""
    import polars as pl

    end = pl.coalesce("response_time_ns", "request_time_ns").alias("time_ns")
    return exchanges.with_row_index("row").with_columns(end).sort("time_ns")


def _account_columns(found: polars.DataFrame, columns: Columns) -> dict[str, Column]:
    accounts: dict[str, Column] = {}
    for each in ACCOUNTS:
        if each.name == OUTSIDE:
            continue
        if each.type == "float":
            accounts[each.name] = Milliseconds(_ns(found[each.name]))
        else:
            known: dict[str, int] = {}
            codes = [
                NONE if text is None else known.setdefault(text, len(known))
                for text in found[each.name].to_list()
            ]
            accounts[each.name] = Coded(np.array(codes, np.int64), list(known))
    broker, latency = accounts["broker_ms"], columns["latency_ms"]
    assert isinstance(broker, Milliseconds)
    assert isinstance(latency, Milliseconds)
    both = (broker.values_ns != NONE) & (latency.values_ns != NONE)
    outside = np.where(both, latency.values_ns - broker.values_ns, NONE)
    accounts[OUTSIDE] = Milliseconds(outside)
    return {name: accounts[name] for name in ACCOUNT_COLUMNS}


def _ns(column: polars.Series) -> Ints:
    """Return milliseconds as nanoseconds; NONE for null."""
    values = (column * 1e6).round().cast(int).fill_null(NONE)
    return values.to_numpy().astype(np.int64)
