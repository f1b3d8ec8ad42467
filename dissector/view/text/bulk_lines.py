"""The lines of many messages from their columns, as `message_line` writes them one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from dissector.engine.tables.column_types import (
    Coded,
    Column,
    Columns,
    Integers,
    Milliseconds,
    distinct,
)
from dissector.engine.tables.exchange_table import NONE, Ints
from dissector.view.text.escape import escaped
from dissector.view.text.summary_line import (
    NOTES,
    LineStyle,
    error_names,
    latency_text,
    topic_names,
    version_text,
)

_TITLE_WIDTH = 32


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
    ends = _joined_texts(
        (columns["connection"], lambda number: f" {f'#{number}':>4}"),
        (columns["source"], lambda source: f" {source:>21}"),
        (columns["target"], lambda target: f" -> {target:<21} "),
    )
    titles = _joined_texts(
        (columns["api"], str),
        (columns["api_version"], version_text),
        (columns["kind"], lambda kind: f" {kind}"),
        null="unknown",
        width=_TITLE_WIDTH,
    )
    names = _joined_texts(
        (columns["client_id"], lambda name: f"  {escaped(name)}"),
        (columns["topics"], _with_gap(topic_names)),
        (columns["errors"], _with_gap(error_names)),
    )
    rows = zip(
        packet.values.tolist(),
        _times(time_ns, style),
        ends,
        titles,
        _joined_texts((columns["correlation_id"], lambda number: f"  id {number}")),
        names,
        _latencies(columns["latency_ms"]),
        _joined_texts((columns["status"], _with_gap(NOTES.get))),
        style.places_of(packet.values),
        strict=True,
    )
    lines = (
        f"{number:>6} {time}{end}{title}{request}{name}{latency}{note}".rstrip() + place
        for number, time, end, title, request, name, latency, note, place in rows
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


def _latencies(column: Column) -> Iterator[str]:
    assert isinstance(column, Milliseconds)
    return (
        "" if value == NONE else f"  {latency_text(value / 1e6)}"
        for value in column.values_ns.tolist()
    )


def _joined_texts(
    *columns: tuple[Column, Callable[[Any], str]], null: str = "", width: int = 0
) -> list[str]:
    """
    Return texts of each row one behind the other; of repeated values they are made once.

    Args:
        columns: Columns, and the functions that make texts of their values.
        null: Stands for nulls of the first column.
        width: The least width of a text.
    """
    codes, texts = _codes_and_texts(*columns[0], null)
    for column, text in columns[1:]:
        more_codes, more_texts = _codes_and_texts(column, text)
        codes, pairs = distinct(codes * len(more_texts) + more_codes)
        first, second = divmod(pairs, len(more_texts))
        texts = [
            texts[one] + more_texts[other]
            for one, other in zip(first.tolist(), second.tolist(), strict=True)
        ]
    chosen: list[str] = np.array([each.ljust(width) for each in texts], object)[codes].tolist()
    return chosen


def _codes_and_texts(
    column: Column, text: Callable[[Any], str], null: str = ""
) -> tuple[Ints, list[str]]:
    """Return for each row the index of its text, and the texts."""
    if isinstance(column, Coded):
        codes = np.where(column.codes == NONE, len(column.values), column.codes)
        return codes, [*(null if each is None else text(each) for each in column.values), null]
    assert isinstance(column, Integers)
    codes, values = distinct(column.values)
    return codes, [null if each == NONE else text(each) for each in values.tolist()]
