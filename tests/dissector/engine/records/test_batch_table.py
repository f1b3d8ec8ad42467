"""The table of batches."""

from __future__ import annotations

import numpy as np

from dissector.engine.records.batch_scanner import find_batches
from dissector.engine.records.batch_table import Batches
from dissector.protocol.records import Record, build_records, new_batch, new_message_set
from dissector.protocol.records.record_constructs import MESSAGE_BODY

THREE = [Record(timestamp=5, value=b"value" * 5)] * 3


def found(field: bytes) -> Batches:
    data, length = np.frombuffer(field, np.uint8), np.array([len(field)])
    none, zero = np.zeros(0, np.uint8), np.zeros(1, np.int64)
    return find_batches(data, none, zero, length, np.ones(1, np.bool_), message_sets=True)


def test_batches_to_decompress() -> None:
    nothing = new_message_set([Record(value=None)])
    nothing[0].attributes |= 1  # marked as gzip, but without a value
    nothing[0].payload = MESSAGE_BODY.build({"key": None, "value": None})
    nothing[0].message_size = len(nothing[0].to_bytes()) - 12
    sets = [new_message_set(THREE), new_message_set(THREE, codec="gzip"), nothing]
    batches = [new_batch(THREE, codec="lz4"), new_batch(THREE), new_batch([], codec="lz4")]
    batches[2].payload = b""
    batches[2].batch_length = 49
    field = b"".join(each.to_bytes(fix_crc=True) for each in (*sets[0], *sets[1], *sets[2]))
    field += b"".join(each.to_bytes(fix_crc=True) for each in batches)
    table = found(field)
    assert table.is_compressed.tolist() == [*[False] * 3, True, False, True, False, False]
    assert table.magic.tolist() == [1] * 5 + [2] * 3
    assert table.record_count.tolist() == [1, 1, 1, 0, 1, 3, 3, 0]


def test_the_payload_of_a_wrapper_is_its_value() -> None:
    (wrapper,) = new_message_set(THREE, codec="lz4", magic=0)
    field = build_records([wrapper])
    table = found(field)
    assert field[int(table.payload_start[0]) : int(table.end[0])][:4] == b"\x04\x22\x4d\x18"
    assert int(table.end[0]) == len(field)
