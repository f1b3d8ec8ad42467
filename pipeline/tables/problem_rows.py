"""Problems of files and of messages, as rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dissector.capture.packets.ip_fragments import MAX_INCOMPLETE
from dissector.capture.tcp.reassembly import MAX_BUFFERED_BYTES
from dissector.engine.correlation.state_tables import MAX_DOUBTFUL_BYTES
from dissector.engine.facts.topic_table import TopicNames
from dissector.engine.reading.capture import Reading
from dissector.engine.reading.segment_source import FileProblems
from dissector.engine.tables.exchange_table import Exchanges
from dissector.engine.tables.polars_tables import escape_invalid_utf8
from dissector.errors import Problem
from dissector.polars_extra import polars as pl
from pipeline.tables.table_schemas import SCHEMAS


def _frame(rows: Iterable[dict[str, Any]]) -> pl.DataFrame:
    empty: Any = pl.from_arrow(SCHEMAS["problems"].empty_table())
    return pl.DataFrame([escape_invalid_utf8(row) for row in rows], schema=empty.schema)


def file_problems(problems: FileProblems) -> pl.DataFrame:
    """Return the problems of files."""
    return _frame(
        {"capture": name, "kind": "file"} | _problem_columns(problem) for name, problem in problems
    )


LIMITS = (
    f"more than {MAX_BUFFERED_BYTES >> 20} MB waited behind holes: some holes became gaps early",
    f"more than {MAX_DOUBTFUL_BYTES >> 20} MB were in doubt: some were decided by few brokers",
    f"more than {MAX_INCOMPLETE:,} datagrams were incomplete: some were dropped",
)
"""
Problems reported when a limit over all connections is hit: of reassembly, of the correlator, of
datagrams. Each task counts separately, so rows may differ from those of a single process.
"""


def limit_problems(before: Iterable[int], now: Iterable[int]) -> pl.DataFrame:
    """
    Return the limits that were hit.

    Args:
        before: Earlier number of hits of each of `LIMITS`.
        now: Current number of hits.
    """
    hit = zip(LIMITS, before, now, strict=True)
    return _frame({"kind": "limit", "problem": text} for text, old, new in hit if new > old)


def message_problems(
    reading: Reading, table: Exchanges, has_problems: NDArray[np.bool_]
) -> pl.DataFrame:
    """
    Return the problems of the messages of a window.

    Args:
        reading: The reading that the window belongs to.
        table: The exchanges of the window.
        has_problems: Which of them have problems.
    """
    rows = []
    for row in np.flatnonzero(has_problems).tolist():
        exchange = reading.exchange(table, row, TopicNames())
        for message in exchange.messages:
            is_request = message.kind == "request"
            packet = exchange.request_packet if is_request else exchange.response_packet
            location = {
                "capture": exchange.capture,
                "packet": packet,
                "time_ns": exchange.request_time_ns if is_request else exchange.response_time_ns,
                "connection": exchange.connection,
                "api": exchange.api,
                "correlation_id": message.correlation_id,
                "kind": message.kind,
            }
            rows += [
                location | _problem_columns(problem) for problem in exchange.problems_of(message)
            ]
    return _frame(rows)


def _problem_columns(problem: Problem) -> dict[str, Any]:
    return {
        "path": problem.path or None,
        "position": problem.position,
        "problem": problem.what,
    }
