"""Common fragments of bodies, by number, for the kernels that write bodies."""

from __future__ import annotations

from itertools import accumulate

from dissector.protocol.codecs.structs import Member
from dissector.protocol.records import layout
from dissector.protocol.records.batch import timestamp_type
from dissector.protocol.records.compression import CODEC_MASK, codec_name
from dissector.protocol.records.control import CONTROL_TYPES
from dissector.view.text.value_text import json_text

EMPTY, NULL, FALSE, BATCH_ATTRIBUTES, CONTROL, MESSAGE_ATTRIBUTES, RECORD = (
    0,
    1,
    2,
    4,
    132,
    139,
    171,
)
"""
First numbers of fragments.

The empty text; null; false, and true; the text after a batch's header, by the low seven bits of its
attributes; the types of control records; the text after a message's header, by the low four bits of
its attributes, for magic 0 and magic 1; the parts of records and of partial batches.
"""
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
    HEADER_FIELD_NAMES,
) = range(RECORD, RECORD + 16)

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
"""Number of the fragments after `MESSAGE_ATTRIBUTES` for each magic."""


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

HEADER_FIELDS = [
    (each.construct.min_bytes, int(each.construct.format_char.islower()))
    for members in _HEADERS
    for each in members
]
"""
Header fields: size, and whether signed.

Fragments of batches, of messages, and of messages as records. In magic 0 the last of the latter is
missing.
"""
BATCH_FIELDS_END, MESSAGE_FIELDS_END, LEGACY_RECORD_FIELDS_END = accumulate(map(len, _HEADERS))
"""Ends of the three groups in `HEADER_FIELDS`."""

SHARED_FRAGMENTS = (
    "",
    "null",
    "false",
    "true",
    *map(_batch_attributes, range(CONTROL - BATCH_ATTRIBUTES)),
    *(
        f', "control_type": {json_text(CONTROL_TYPES[n])}'
        for n in range(MESSAGE_ATTRIBUTES - CONTROL)
    ),
    *map(_message_attributes, range(RECORD - MESSAGE_ATTRIBUTES)),
    *_RECORD_TEXTS,
    *(
        f'{", " if at else "{"}"{member.name}": '
        for members in _HEADERS
        for at, member in enumerate(members)
    ),
)
"""The fragments that all programs share."""
