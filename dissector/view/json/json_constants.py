"""Common fragments of bodies, by number, for the kernels that write bodies."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from dissector.kernel.named_rows import NamedRow
from dissector.protocol.codecs.structs import Member
from dissector.protocol.records import layout
from dissector.protocol.records.batch import timestamp_type
from dissector.protocol.records.compression import CODEC_MASK, codec_name
from dissector.protocol.records.control import CONTROL_TYPES
from dissector.view.text.value_text import json_text


class Fragment:
    """First numbers of fragments."""

    # The empty text; null; false, and true.
    EMPTY, NULL, FALSE = 0, 1, 2
    # The text after a batch's header, by the low seven bits of its attributes.
    BATCH_ATTRIBUTES = 4
    # The types of control records.
    CONTROL = 132
    # The text after a message's header, by the low four bits of its attributes, for magic 0 and 1.
    MESSAGE_ATTRIBUTES = 139
    # The parts of records and of partial batches.
    RECORD = 171
    (
        RECORD_ATTRIBUTES,
        RECORD_TIMESTAMP_DELTA,
        RECORD_OFFSET_DELTA,
        RECORD_KEY,
        RECORD_VALUE,
        RECORD_HEADERS,
        RECORD_HEADER_KEY,
        RECORD_HEADER_VALUE,
        RECORD_OFFSET,
        RECORD_TIMESTAMP,
        PARTIAL_OFFSET,
        PARTIAL_LENGTH,
        PARTIAL_MAGIC,
        PARTIAL_BYTES,
        PARTIAL_END,
    ) = range(RECORD, RECORD + 15)
    # The names of `HEADER_FIELDS`.
    HEADER_FIELD_NAMES = RECORD + 15


_RECORD_TEXTS = (
    '{"attributes": ',
    ', "timestamp_delta": ',
    ', "offset_delta": ',
    ', "key": ',
    ', "value": ',
    ', "headers": [',
    '{"key": ',
    ', "value": ',
    '], "offset": ',
    ', "timestamp": ',
    '{"base_offset": ',
    ', "batch_length": ',
    ', "magic": ',
    ', "partial": true, "bytes": "',
    '", "records": []}',
)


def _batch_attributes(attributes: int) -> str:
    """Return the text of `RecordBatch.to_dict` after the header, for a valid batch."""
    members = {
        "codec": codec_name(attributes),
        "timestamp_type": timestamp_type(attributes),
        "transactional": bool(attributes & layout.TRANSACTIONAL),
        "control": bool(attributes & layout.CONTROL),
        "has_delete_horizon": bool(attributes & layout.DELETE_HORIZON),
        "crc_ok": True,
    }
    return f', {json_text(members)[1:-1]}, "records": ['


ATTRIBUTES_PER_MAGIC = (CODEC_MASK | layout.TIMESTAMP_TYPE) + 1
"""Number of the fragments after `Fragment.MESSAGE_ATTRIBUTES` for each magic."""


def _message_attributes(number: int) -> str:
    """Return the text of `LegacyBatch.to_dict` after the header, for a valid message."""
    magic, attributes = divmod(number, ATTRIBUTES_PER_MAGIC)
    members = {
        "codec": codec_name(attributes),
        "timestamp_type": timestamp_type(attributes) if magic else None,
        "crc_ok": True,
    }
    return f', {json_text(members)[1:-1]}, "records": ['


_BATCH = layout.BATCH.construct.members
_MESSAGE = layout.MESSAGE_1.construct.members
_OFFSET = _MESSAGE[0]
_LEGACY_RECORD = [_OFFSET, Member("inner_offset", _OFFSET.construct), *_MESSAGE[1:]]
_HEADERS = (_BATCH, _MESSAGE, _LEGACY_RECORD)


@dataclass(slots=True)
class HeaderField(NamedRow):
    """A number in the header of a batch or message."""

    size: int
    is_signed: bool


HEADER_FIELDS = [
    HeaderField(each.construct.min_bytes, each.construct.format_char.islower())
    for members in _HEADERS
    for each in members
]
"""
The header fields of batches, of messages, and of messages as records. In magic 0 the last of the
latter is missing.
"""
BATCH_FIELDS_END, MESSAGE_FIELDS_END, LEGACY_RECORD_FIELDS_END = accumulate(map(len, _HEADERS))
"""Ends of the three groups in `HEADER_FIELDS`."""

SHARED_FRAGMENTS = (
    "",
    "null",
    "false",
    "true",
    *map(_batch_attributes, range(Fragment.CONTROL - Fragment.BATCH_ATTRIBUTES)),
    *(
        f', "control_type": {json_text(CONTROL_TYPES[n])}'
        for n in range(Fragment.MESSAGE_ATTRIBUTES - Fragment.CONTROL)
    ),
    *map(_message_attributes, range(Fragment.RECORD - Fragment.MESSAGE_ATTRIBUTES)),
    *_RECORD_TEXTS,
    *(
        f'{", " if at else "{"}"{member.name}": '
        for members in _HEADERS
        for at, member in enumerate(members)
    ),
)
"""The fragments that all programs share."""
