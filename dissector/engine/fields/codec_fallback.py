"""
The fields of messages that the tape can't read to their end, read by the codecs' spans.

The rows equal the tape's as far as the bytes fit, and are followed by a row for each problem.
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
from dissector.protocol.embedded.secrecy.blanked_ranges import overlaps_secret
from dissector.protocol.messages import Message
from dissector.protocol.spans import Span, spans


class FieldRow(NamedTuple):
    """
    One field: the columns of `fields`, without the message's.

    Attributes:
        path: Names of the field and of the structs around it, joined by dots.
        type: Kafka's type name; empty for a problem.
        item: Number of the array item that contains the field; as in `Tape`.
        around: Number of the item that contains `item`.
        offset: Offset of the content in the frame; None for a problem without a position.
        length: Bytes of the content.
        value: The number.
        text: The text.
        problem: Description of a problem.
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
    Walks spans in wire order and collects rows.

    Attributes:
        secret_ranges: Ranges of the frame that are secret.
        rows: The rows so far.
        item_count: Number of array items so far.
    """

    secret_ranges: list[tuple[int, int]]
    rows: list[FieldRow] = field(default_factory=list)
    item_count: int = 0

    def add_struct(self, span: Span, prefix: str, item: int, around: int) -> None:
        """Add the fields of a struct."""
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

    def add_array(self, span: Span, path: str, type_name: str, item: int, around: int) -> None:
        """Add an array: its count, then its items."""
        if not span.problem:
            count = None if span.value is None else len(span.value)
            first = span.children[0].start if span.children else span.end
            self.rows.append(FieldRow(path, type_name, item, around, first, value=count))
        for child in span.children:
            self.item_count += 1
            if type_name == "[]struct":
                self.add_struct(child, f"{path}.", self.item_count, item)
            else:
                self.add_field(child, f"{path}[]", type_name[2:], self.item_count, item)

    def add_field(self, span: Span, path: str, type_name: str, item: int, around: int) -> None:
        """Add a field without child fields."""
        if span.problem:
            return
        offset, length, value, text = _span_content(span, type_name)
        if length is not None and type_name != "records" and self._is_secret(span):
            value, text = None, MASK
        self.rows.append(FieldRow(path, type_name, item, around, offset, length, value, text))

    def _is_secret(self, span: Span) -> bool:
        return overlaps_secret(self.secret_ranges, span.start, span.end)


def _span_content(span: Span, type_name: str) -> tuple[int, int | None, int | None, str | None]:
    """Return offset, length, value and text of a span's content."""
    value: Any = span.value
    match value:
        case None:
            return (span.start if type_name == "struct" else span.end), None, None, None
        case str():
            size = len(value.encode("utf-8", "surrogateescape"))
            return span.end - size, size, None, value
        case bytes():
            text = None if type_name == "records" else value.hex()
            return span.end - len(value), len(value), None, text
        case UUID():
            return span.start, 16, None, str(value)
        case float():
            return span.start, 8, None, repr(value)
        case _:
            return span.start, span.end - span.start, int(value), None


def fallback_columns(rows: list[tuple[int, FieldRow]], names: FieldNames) -> FieldColumns:
    """
    Convert rows to columns.

    Args:
        rows: Pairs of message number and row.
        names: Registry of paths, types and problems; new ones are added.
    """
    fields = [row for _, row in rows]
    no_bytes = np.zeros(0, np.uint8)
    nulls = np.full(len(fields), NONE)
    text = Slices(
        nulls, np.zeros(len(fields), np.int64), SliceBuffers(no_bytes, no_bytes, no_bytes)
    )
    set_texts(text, np.arange(len(fields)), [row.text for row in fields])
    return FieldColumns(
        message=np.array([message for message, _ in rows], np.int32),
        name=np.array([names.number_of(row.path, row.type) for row in fields], np.int32),
        item=np.array([row.item for row in fields], np.int32),
        around=np.array([row.around for row in fields], np.int32),
        offset=np.array([_value_or(row.offset, ABSENT) for row in fields], np.int32),
        length=np.array([_value_or(row.length, ABSENT) for row in fields], np.int32),
        value=np.array([_value_or(row.value, 0) for row in fields], np.int64),
        has_value=np.array([row.value is not None for row in fields], np.uint8),
        text=text,
        problem=np.array([names.add_problem(row.problem) for row in fields], np.uint32),
    )


def _value_or(value: int | None, default: int) -> int:
    return default if value is None else value
