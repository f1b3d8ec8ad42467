"""What was wrong, as rows: with files, and with messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl

from dissector.capture.packets.ip_fragments import MAX_INCOMPLETE
from dissector.capture.tcp.reassembly import MAX_BUFFERED_BYTES
from dissector.engine.correlation.slow_path import MAX_DOUBTFUL_BYTES
from dissector.engine.facts.topic_table import TopicNames
from dissector.engine.reading.capture import Reading
from dissector.engine.reading.segment_source import FileProblems
from dissector.engine.tables.exchange_table import Exchanges
from dissector.engine.tables.frames import escape_invalid_utf8
from dissector.errors import Problem
from pipeline.tables.table_schemas import SCHEMAS


def _frame(rows: Iterable[dict[str, Any]]) -> pl.DataFrame:
    empty: Any = pl.from_arrow(SCHEMAS["problems"].empty_table())
    return pl.DataFrame([escape_invalid_utf8(row) for row in rows], schema=empty.schema)


def file_problems(problems: FileProblems) -> pl.DataFrame:
    """Return what was wrong with files."""
    return _frame({"capture": name, "kind": "file"} | _said(problem) for name, problem in problems)


LIMITS = (
    f"more than {MAX_BUFFERED_BYTES >> 20} MB waited behind holes: some were waited for no longer",
    f"more than {MAX_DOUBTFUL_BYTES >> 20} MB were in doubt: some were judged by few brokers",
    f"more than {MAX_INCOMPLETE:,} datagrams were incomplete: some were given up",
)
"""
What is told when a limit is hit that counts over all connections: of streams, of conversations, of
what is below them. Each task counts for itself, so rows may be others than those of one process.
"""


def limit_problems(before: Iterable[int], now: Iterable[int]) -> pl.DataFrame:
    """
    Return which limits were hit.

    Args:
        before: How often each of `LIMITS` was by then.
        now: Likewise.
    """
    hit = zip(LIMITS, before, now, strict=True)
    return _frame({"kind": "limit", "problem": text} for text, old, new in hit if new > old)


def message_problems(reading: Reading, table: Exchanges, exchanges: pl.DataFrame) -> pl.DataFrame:
    """
    Return what was wrong with the messages of a window.

    Args:
        reading: The reading that the window is of.
        table: The exchanges of the window.
        exchanges: Their columns of `pairs`.
    """
    rows = []
    for row in np.flatnonzero(exchanges["problems"].list.len().to_numpy() > 0).tolist():
        exchange = reading.exchange(table, row, TopicNames())
        for message in exchange.messages:
            asked = message.kind == "request"
            packet = exchange.request_packet if asked else exchange.response_packet
            where = {
                "capture": exchange.capture,
                "packet": packet,
                "time_ns": exchange.request_time_ns if asked else exchange.response_time_ns,
                "connection": exchange.connection,
                "api": exchange.api,
                "correlation_id": message.correlation_id,
                "kind": message.kind,
            }
            rows += [where | _said(problem) for problem in exchange.problems_of(message)]
    return _frame(rows)


def _said(problem: Problem) -> dict[str, Any]:
    return {
        "path": problem.path or None,
        "position": problem.position,
        "problem": problem.what,
    }
