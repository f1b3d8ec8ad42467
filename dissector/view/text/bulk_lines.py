"""The lines of many messages from their columns, as `message_line` writes them one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from dissector.engine.tables.column_types import Coded, Column, Columns, Integers, Milliseconds
from dissector.engine.tables.exchange_table import NONE
from dissector.view.text.escape import escaped
from dissector.view.text.summary_line import (
    NOTES,
    LineStyle,
    error_names,
    latency_text,
    topic_names,
    version_text,
)


def message_lines(columns: Columns, style: LineStyle) -> Iterator[str]:
    """
    Return the lines of messages without problems.

    Args:
        columns: The writers of `dissect -T ndjson`; bodies are not needed.
        style: How lines are shown.
    """
    packet, time_ns = columns["packet"], columns["time_ns"]
    assert isinstance(packet, Integers)
    assert isinstance(time_ns, Integers)
    details = zip(
        _texts(columns["correlation_id"], lambda number: f"  id {number}"),
        _texts(columns["client_id"], lambda name: f"  {escaped(name)}"),
        _texts(columns["topics"], _with_gap(topic_names)),
        _texts(columns["errors"], _with_gap(error_names)),
        _texts(columns["latency_ms"], lambda latency_ms: f"  {latency_text(latency_ms)}"),
        _texts(columns["status"], _with_gap(NOTES.get)),
        strict=True,
    )
    titles = zip(
        _texts(columns["api"], str, "unknown"),
        _texts(columns["api_version"], version_text),
        _texts(columns["kind"], lambda kind: f" {kind}"),
        strict=True,
    )
    rows = zip(
        packet.values.tolist(),
        _times(time_ns, style),
        _texts(columns["connection"], lambda number: f"{f'#{number}':>4}"),
        _texts(columns["source"], lambda source: f"{source:>21}"),
        _texts(columns["target"], lambda target: f"{target:<21}"),
        map("".join, titles),
        map("".join, details),
        strict=True,
    )
    lines = (
        f"{number:>6} {time} {connection} {source} -> {target} {title:<32}{detail}".rstrip()
        for number, time, connection, source, target, title, detail in rows
    )
    return _in_color(lines, columns, style) if style.has_color else lines


def _times(time_ns: Integers, style: LineStyle) -> Iterable[str]:
    if style.times is not None:
        return map(style.time, time_ns.values.tolist())
    seconds = ((time_ns.values - style.begin_ns) / 1e9).tolist()
    return (f"{each:>12.6f}" for each in seconds)


def _in_color(lines: Iterable[str], columns: Columns, style: LineStyle) -> Iterator[str]:
    for row, line in enumerate(lines):
        errors, status = columns["errors"].value(row), columns["status"].value(row)
        yield style.line(line, errors, str(status), None)


def _with_gap(text: Callable[[Any], str | None]) -> Callable[[Any], str]:
    """Return a function that puts two spaces before a non-empty text."""
    return lambda value: f"  {shown}" if (shown := text(value)) else ""


def _texts(column: Column, text: Callable[[Any], str], null: str = "") -> list[str]:
    """Return the text of each row; of a repeated value it is made once."""
    if isinstance(column, Coded):
        texts = [null if value is None else text(value) for value in column.values]
        codes = np.where(column.codes == NONE, len(column.values), column.codes)
        chosen: list[str] = np.array([*texts, null], object)[codes].tolist()
        return chosen
    if isinstance(column, Milliseconds):
        values = column.values_ns.tolist()
        return [null if value == NONE else text(value / 1e6) for value in values]
    assert isinstance(column, Integers)
    return [null if value == NONE else text(value) for value in column.values.tolist()]
