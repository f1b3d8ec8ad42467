"""The texts that the loops which write bodies copy: those that all bodies share, by number."""

from __future__ import annotations

from itertools import accumulate

from dissector.protocol.records import layout
from dissector.protocol.records.batch import timestamp_type
from dissector.protocol.records.compression import CODEC_MASK, codec_name
from dissector.protocol.records.control import CONTROL_TYPES
from dissector.protocol.structs import Member
from dissector.view.text.value_text import json_text

NOTHING, NULL, FALSE, MEANING, CONTROL, OLD_MEANING, RECORD = 0, 1, 2, 4, 132, 139, 171
"""
Fragments: nothing; null; false, and true; what attributes of a batch mean, by their low seven bits;
the types of control records, by number; what attributes of a message in a set mean, by their low
four bits, in magic 0 and in magic 1; the parts of records and of batches that are cut off.
"""
(
    OF_ATTRIBUTES,
    OF_TIMESTAMP_DELTA,
    OF_OFFSET_DELTA,
    OF_KEY,
    OF_VALUE,
    OF_HEADERS,
    OF_HEADER_KEY,
    OF_HEADER_VALUE,
    OF_OFFSET,
    OF_TIMESTAMP,
    CUT_OFFSET,
    CUT_LENGTH,
    CUT_MAGIC,
    CUT_BYTES,
    CUT_END,
    NUMBERS,
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


def _meaning(attributes: int) -> str:
    """Return what `RecordBatch.to_dict` says of a batch that is right, behind its header."""
    said = {
        "codec": codec_name(attributes),
        "timestamp_type": timestamp_type(attributes),
        "transactional": bool(attributes & layout.TRANSACTIONAL),
        "control": bool(attributes & layout.CONTROL),
        "has_delete_horizon": bool(attributes & layout.DELETE_HORIZON),
        "crc_ok": True,
    }
    return f', {json_text(said)[1:-1]}, "records": ['


OLD_MEANINGS = (CODEC_MASK | layout.TIMESTAMP_TYPE) + 1
"""How many of `OLD_MEANING` there are for each magic."""


def _old_meaning(number: int) -> str:
    """Return what `LegacyBatch.to_dict` says of a message that is right, behind its header."""
    magic, attributes = divmod(number, OLD_MEANINGS)
    said = {
        "codec": codec_name(attributes),
        "timestamp_type": timestamp_type(attributes) if magic else None,
        "crc_ok": True,
    }
    return f', {json_text(said)[1:-1]}, "records": ['


_BATCH = layout.BATCH.construct.members
_MESSAGE = layout.MESSAGE_1.construct.members
_OFFSET = _MESSAGE[0]
_OLD_RECORD = [_OFFSET, Member("inner_offset", _OFFSET.construct), *_MESSAGE[1:]]
_HEADERS = (_BATCH, _MESSAGE, _OLD_RECORD)

HEADER_NUMBERS = [
    (each.construct.min_bytes, int(each.construct.format_char.islower()))
    for members in _HEADERS
    for each in members
]
"""
Size of each number, and whether it is signed, in the headers of batches, of messages, and of
messages as records. In magic 0 the last is missing.
"""
BATCH_NUMBERS, OLD_NUMBERS, OLD_RECORD_NUMBERS = accumulate(map(len, _HEADERS))
"""Where those of each end."""

FIXED = (
    "",
    "null",
    "false",
    "true",
    *map(_meaning, range(CONTROL - MEANING)),
    *(f', "control_type": {json_text(CONTROL_TYPES[n])}' for n in range(OLD_MEANING - CONTROL)),
    *map(_old_meaning, range(RECORD - OLD_MEANING)),
    *_RECORD_TEXTS,
    *(
        f'{", " if at else "{"}"{member.name}": '
        for members in _HEADERS
        for at, member in enumerate(members)
    ),
)
"""The fragments that all programs share."""
