"""The batches and records of a `records` field as lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from dissector.protocol.records import Batch, LegacyBatch, LegacyRecord, Record, RecordBatch, layout
from dissector.protocol.records.field import UnreadBatch
from dissector.view.text.annotations import meaning
from dissector.view.text.escape import escaped, hexed, quoted
from dissector.view.text.field_lines import MASK, indented
from dissector.view.text.value_text import time_ms_text

AnyRecord = Record | LegacyRecord


@dataclass(frozen=True, slots=True)
class RecordOptions:
    """
    How records are shown.

    Attributes:
        is_secret: Whether unread bytes are masked.
        annotate: Describes a record that Kafka itself wrote, given the record and whether it is in
            a control batch: returns whether its value is masked, and lines to show below it.
    """

    is_secret: bool
    annotate: Callable[[AnyRecord, bool], tuple[bool, list[str]]]


def batch_lines(batches: Sequence[Batch], base: int | None, options: RecordOptions) -> list[str]:
    """
    Return the lines of the batches of one field.

    Args:
        batches: As returned by `parse_records`.
        base: Offset of the field's content in the frame; None where it is not part of the frame.
        options: How to show the records.
    """
    lines = []
    for index, batch in enumerate(batches):
        match batch:
            case UnreadBatch():
                lines += _unread_lines(f"[{index}]", batch, base, options)
            case RecordBatch():
                heading = f"[{index}]: record batch of magic 2, {batch.codec}"
                lines += _decoded_lines(
                    heading, batch, layout.BATCH, batch.batch_length, base, options
                )
            case LegacyBatch():
                header = layout.MESSAGE_1 if batch.magic else layout.MESSAGE_0
                heading = f"[{index}]: message of magic {batch.magic}, {batch.codec}"
                lines += _decoded_lines(heading, batch, header, batch.message_size, base, options)
    return lines


def _place(base: int | None, start: int, end: int) -> str:
    return "" if base is None else f" [{base + start}..{base + end})"


def _problems(batch: Batch, base: int | None) -> list[str]:
    lines = []
    for problem in batch.problems:
        has_position = base is not None and problem.position is not None
        at = f" at byte {(base or 0) + (problem.position or 0)}" if has_position else ""
        lines.append(f"! {problem.path}{at}: {escaped(problem.what)}")
    return lines


def _unread_lines(
    heading: str, batch: UnreadBatch, base: int | None, options: RecordOptions
) -> list[str]:
    state = "a batch that is cut off" if batch.partial else "not read"
    shown = MASK if options.is_secret else hexed(batch.data)
    range_text = _place(base, batch.position, batch.position + len(batch.data))
    return [f"{heading}: {state}: {shown}{range_text}", *indented(_problems(batch, base))]


def _decoded_lines(
    heading: str,
    batch: RecordBatch | LegacyBatch,
    header: layout.Header,
    length: int,
    base: int | None,
    options: RecordOptions,
) -> list[str]:
    decoded: Sequence[AnyRecord] = batch.records
    count = len(decoded)
    end = batch.position + layout.LENGTH_END + length
    control = isinstance(batch, RecordBatch) and batch.control
    records = (
        line
        for index, record in enumerate(decoded)
        for line in _record_lines(index, record, control, options)
    )
    return [
        f"{heading}, {count:,} record{'s' * (count != 1)}{_place(base, batch.position, end)}",
        *indented(list(_header_lines(batch, header, base))),
        *indented(_problems(batch, base)),
        *indented(list(records)),
    ]


def _header_lines(
    batch: RecordBatch | LegacyBatch, header: layout.Header, base: int | None
) -> Iterable[str]:
    at = batch.position
    for member in header.construct.members:
        value = getattr(batch, member.name)
        if member.name == "crc":
            text = f"0x{value:08x} ({'correct' if batch.crc_ok else 'incorrect'})"
        else:
            description = meaning(member.name, value)
            text = f"{value} ({description})" if description else f"{value}"
        end = at + member.construct.min_bytes
        yield f"{member.name}: {text}{_place(base, at, end)}"
        at = end


def _record_lines(
    index: int, record: AnyRecord, control: bool, options: RecordOptions
) -> list[str]:
    time = "" if record.timestamp is None else f", {time_ms_text(record.timestamp)}"
    is_masked, nested = options.annotate(record, control)
    value = MASK if is_masked else data_text(record.value)
    lines = [f"[{index}]: offset {record.offset}{time}, key {data_text(record.key)}, value {value}"]
    headers = [f"header {quoted(key)}: {data_text(data)}" for key, data in record.headers]
    return lines + indented(headers + nested)


def data_text(data: bytes | None) -> str:
    """Return the bytes of a key or a value: as text if they look like text, else as hex."""
    if data is None:
        return "null"
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return hexed(data)
    binary = any(character < " " and character not in "\t\n\r" for character in text[:200])
    return hexed(data) if binary else quoted(text)
