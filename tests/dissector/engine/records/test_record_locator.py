"""Positions of the `records` fields of a window."""

from __future__ import annotations

from uuid import UUID

from dissector.engine.records.record_locator import locate_records
from tests.dissector.engine.records.test_record_windows import PLAIN, exchange_row, fetched, produce
from tests.reference.correlation.exchange_rows import to_exchange_table


def test_fields_have_topics_and_partitions() -> None:
    table = to_exchange_table(
        [
            exchange_row(produce(9, ("a", [None, PLAIN, b""]), ("b", [PLAIN]), ("c", []))),
            fetched(16, (UUID(int=9), [PLAIN, PLAIN])),
            fetched(4, ("a", [PLAIN])),
        ]
    )
    fields = locate_records(table)
    assert fields.row.tolist() == [0, 0, 1, 1, 2]
    assert [fields.topics[number] for number in fields.topic.tolist()] == [
        *("a", "b", UUID(int=9), UUID(int=9), "a")
    ]
    assert fields.partition.tolist() == [1, 0, 0, 1, 0]
    assert fields.correlation_id.tolist() == [3, 3, 4, 4, 4]
    assert fields.time_ns.tolist() == [5, 5, 9, 9, 9]
    assert fields.may_be_cut.tolist() == [False, False, True, True, True]
    for start, length in zip(fields.start.tolist(), fields.length.tolist(), strict=True):
        assert table.bytes_at(start, length) == PLAIN
    assert fields.undecoded.tolist() == []


def test_batches_with_missing_or_extra_bytes_are_left_to_python() -> None:
    frame = produce(9, ("a", [PLAIN]))
    longer = (len(frame) - 3).to_bytes(4, "big") + frame[4:] + b"x"
    unknown = frame[:6] + b"\x7f\xff" + frame[8:]
    rows = exchange_row(frame), exchange_row(frame, cut=1), exchange_row(longer)
    fields = locate_records(to_exchange_table([*rows, exchange_row(unknown)]))
    assert fields.row.tolist() == [0]
    assert fields.undecoded.tolist() == [1, 2, 3]
