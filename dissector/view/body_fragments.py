"""The texts that the loops which write bodies copy: those that all bodies share, by number."""

from __future__ import annotations

from dissector.protocol.records import layout
from dissector.protocol.records.batch import timestamp_type
from dissector.protocol.records.compression import codec_name
from dissector.protocol.records.control import CONTROL_TYPES
from dissector.view.values import json_text

NOTHING, NULL, FALSE, MEANING, CONTROL, RECORD = 0, 1, 2, 4, 132, 139
"""
Fragments: nothing; null; false, and true; what attributes of a batch mean, by their low seven bits;
the types of control records, by number; the parts of records and of batches that are cut off.
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
    BATCH_FIELDS,
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


_BATCH = layout.BATCH.construct.members

FIXED = (
    "",
    "null",
    "false",
    "true",
    *map(_meaning, range(CONTROL - MEANING)),
    *(f', "control_type": {json_text(CONTROL_TYPES[n])}' for n in range(RECORD - CONTROL)),
    *_RECORD_TEXTS,
    *(f'{", " if at else "{"}"{member.name}": ' for at, member in enumerate(_BATCH)),
)
"""The fragments that all programs share."""

BATCH_NUMBERS = [(each.construct.least, int(each.construct.letter.islower())) for each in _BATCH]
"""Size of each number in the header of a batch, and whether it is signed."""
