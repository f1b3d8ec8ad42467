"""
The fields of a message that the tape can't read to its end, as the codecs' spans tell them.

They are the same rows that the tape gives, as far as the bytes fit, then a row for each problem.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

import numpy as np

from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.fields.field_columns import ABSENT, FieldColumns, set_texts
from dissector.engine.fields.field_frame import FieldNames
from dissector.engine.tables.column_types import SliceBuffers, Slices
from dissector.engine.tables.exchange_table import NONE
from dissector.engine.tape.tape import NO_ITEM
from dissector.protocol.embedded.masking import secret_ranges
from dissector.protocol.embedded.sasl_tokens import MASK
from dissector.protocol.messages import Message
from dissector.protocol.spans import Span, spans


class FieldRow(NamedTuple):
    """
    One field; the columns of `fields` that are not those of the message.

    Attributes:
        path: Names that lead to it.
        type: Kafka's word; empty for a problem.
        item: The item of an array that holds it; as in `Tape`.
        around: The item that holds that one.
        offset: Where its content begins in the frame; None where a problem has no place.
        length: Of the content.
        value: The number.
        text: The text.
        problem: What is wrong.
    """

    path: str
    type: str = ""
    item: int = 0
    around: int = NO_ITEM
    offset: int | None = None
    length: int | None = None
    value: int | None = None
    text: str | None = None
    problem: str | None = None


def field_rows(exchange: Exchange, message: Message, show_secrets: bool) -> list[FieldRow]:
    """Return the rows of one message of an exchange."""
    if exchange.is_token:
        text = message.frame.hex() if show_secrets else MASK
        return [FieldRow("token", "bytes", offset=0, length=len(message.frame), text=text)]
    request = exchange.request if message.kind == "response" else None
    rows = _SpanWalker([] if show_secrets else secret_ranges(message, request))
    schema, version = message.header
    header = spans(schema, version, message.frame)
    rows.add_struct(header, "header.", 0, NO_ITEM)
    if message.schema is not None and not header.problem:
        body = spans(message.schema, message.api_version or 0, message.frame, message.body_start)
        rows.add_struct(body, "", 0, NO_ITEM)
    return rows.rows + [
        _problem_row(each.path, each.what, each.position) for each in message.problems
    ]


_INDEX = re.compile(r"\[\d+\]")


def _problem_row(path: str, reason: str, position: int | None) -> FieldRow:
    inside = _INDEX.sub("", path).partition(".")[2]
    return FieldRow(inside, offset=position, problem=reason)


@dataclass(slots=True)
class _SpanWalker:
    """
    Walks spans in wire order.

    Attributes:
        secret_ranges: Ranges of the frame that are secret.
        rows: The rows.
        item_count: How many items of arrays there were.
    """

    secret_ranges: list[tuple[int, int]]
    rows: list[FieldRow] = field(default_factory=list)
    item_count: int = 0

    def add_struct(self, span: Span, prefix: str, item: int, around: int) -> None:
        """Take the fields of a struct."""
        for child in span.children:
            path = prefix + child.name
            declared = child.declared
            if declared is None:
                self.add_field(child, path, "bytes", item, around)
            elif declared.type == "struct" and (child.children or child.value is not None):
                self.add_struct(child, f"{path}.", item, around)
            elif declared.type.startswith("[]"):
                self.add_array(child, path, declared.type, item, around)
            else:
                self.add_field(child, path, declared.type, item, around)

    def add_array(self, span: Span, path: str, word: str, item: int, around: int) -> None:
        """Take an array: its count, then its items."""
        if not span.problem:
            count = None if span.value is None else len(span.value)
            first = span.children[0].start if span.children else span.end
            self.rows.append(FieldRow(path, word, item, around, first, value=count))
        for child in span.children:
            self.item_count += 1
            if word == "[]struct":
                self.add_struct(child, f"{path}.", self.item_count, item)
            else:
                self.add_field(child, f"{path}[]", word[2:], self.item_count, item)

    def add_field(self, span: Span, path: str, word: str, item: int, around: int) -> None:
        """Take a field that has no fields."""
        if span.problem:
            return
        offset, length, value, text = _span_content(span, word)
        if length is not None and word != "records" and self._is_secret(span):
            value, text = None, MASK
        self.rows.append(FieldRow(path, word, item, around, offset, length, value, text))

    def _is_secret(self, span: Span) -> bool:
        return any(start < span.end and span.start < end for start, end in self.secret_ranges)


def _span_content(span: Span, word: str) -> tuple[int, int | None, int | None, str | None]:
    """Return offset, length, value and text."""
    value: Any = span.value
    match value:
        case None:
            return (span.start if word == "struct" else span.end), None, None, None
        case str():
            size = len(value.encode("utf-8", "surrogateescape"))
            return span.end - size, size, None, value
        case bytes():
            text = None if word == "records" else value.hex()
            return span.end - len(value), len(value), None, text
        case UUID():
            return span.start, 16, None, str(value)
        case float():
            return span.start, 8, None, repr(value)
        case _:
            return span.start, span.end - span.start, int(value), None


def fallback_columns(rows: list[tuple[int, FieldRow]], names: FieldNames) -> FieldColumns:
    """
    Return rows as columns.

    Args:
        rows: Each with the number of its message.
        names: Learns paths, types and problems.
    """
    new = [row for _, row in rows]
    none = np.zeros(0, np.uint8)
    nothing = np.full(len(new), NONE)
    text = Slices(nothing, np.zeros(len(new), np.int64), SliceBuffers(none, none, none))
    set_texts(text, np.arange(len(new)), [row.text for row in new])
    return FieldColumns(
        message=np.array([message for message, _ in rows], np.int32),
        name=np.array([names.number_of(row.path, row.type) for row in new], np.int32),
        item=np.array([row.item for row in new], np.int32),
        around=np.array([row.around for row in new], np.int32),
        offset=np.array([_value_or(row.offset, ABSENT) for row in new], np.int32),
        length=np.array([_value_or(row.length, ABSENT) for row in new], np.int32),
        value=np.array([_value_or(row.value, 0) for row in new], np.int64),
        has_value=np.array([row.value is not None for row in new], np.uint8),
        text=text,
        problem=np.array([names.add_problem(row.problem) for row in new], np.uint32),
    )


def _value_or(value: int | None, nothing: int) -> int:
    return nothing if value is None else value
