"""Records decoded into columns by one loop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.engine.records import batch_scanner, record_decoder
from dissector.engine.records.batch_scanner import find_batches
from dissector.engine.records.batch_table import HEADER_BYTES, INVALID, VALID, Batches
from dissector.engine.records.decompressor import iter_payloads
from dissector.engine.records.record_arrays import RecordColumns
from dissector.engine.records.record_decoder import Records
from dissector.engine.tables.exchange_table import NONE
from dissector.protocol.records import Record, new_batch, parse_records
from tests.dissector.protocol.records.record_values import BATCHES
from tests.kernel_modes import both

mode = both(batch_scanner, record_decoder)

Read = tuple[Records, Batches, bytes]


def read(fields: list[bytes]) -> Read:
    """Return the records of some fields, their batches, and all bytes."""
    data = np.frombuffer(b"".join(fields), np.uint8)
    length = np.array([len(each) for each in fields], np.int64)
    held = np.zeros(0, np.uint8)
    may_be_cut = np.ones(len(fields), np.bool_)
    found = find_batches(data, held, np.cumsum(length) - length, length, may_be_cut)
    (these,) = iter_payloads(data, held, found, np.arange(len(found)))
    used = max(these.end.tolist(), default=0) - len(data)
    everything = data.tobytes() + these.arena[: max(used, 0)].tobytes()
    return record_decoder.read_records(data, held, found, these), found, everything


def rows(got: Read) -> list[tuple[object, ...]]:
    """Return the records of valid fields: field, offset, time, key, value, headers."""
    records, found, everything = got

    def content(start: int, length: int) -> bytes | None:
        return None if start == NONE else everything[start : start + length]

    out = []
    headers = zip(*(each.tolist() for each in records.headers.columns), strict=True)
    columns = zip(*(each.tolist() for each in records.columns), strict=True)
    for batch, record in zip(
        records.batch.tolist(), map(RecordColumns._make, columns), strict=True
    ):
        of_record = [next(headers) for _ in range(record.header_count)]
        field = int(found.field[batch])
        if found.state[field] == VALID:
            key = content(record.key, record.key_length)
            value = content(record.value, record.value_length)
            named = [(content(k, kl), content(v, vl)) for k, kl, v, vl in of_record]
            out.append((field, record.offset, record.timestamp, key, value, named))
    assert next(headers, None) is None
    return out


def expected(fields: list[bytes]) -> list[tuple[object, ...]]:
    out: list[tuple[object, ...]] = []
    for number, data in enumerate(fields):
        batches = parse_records(data)
        right = not any(batch.problems for batch in batches)
        for batch in batches:
            if right:
                out += [
                    (
                        number,
                        record.offset,
                        record.timestamp,
                        record.key,
                        record.value,
                        [(k.encode("utf-8", "surrogateescape"), v) for k, v in record.headers],
                    )
                    for record in batch.records
                ]
    return out


@st.composite
def written(draw: st.DrawFn) -> bytes:
    """A batch with a valid CRC but possibly an invalid payload."""
    batch = draw(BATCHES)
    data = bytearray(batch.to_bytes())
    for _ in range(draw(st.integers(0, 2))):
        # Length and magic are unchanged: it remains one batch.
        at = draw(st.integers(21, len(data) - 1))
        data[at] = draw(st.integers(0, 255))
    (changed,) = parse_records(bytes(data))
    return changed.to_bytes(fix_crc=True)


@pytest.mark.thinned(2)
@given(st.lists(written(), max_size=5))
def test_the_columns_equal_the_records_of_the_python_reader(fields: list[bytes]) -> None:
    assert rows(read(fields)) == expected(fields)


def test_integers_wrap_at_64_bits() -> None:
    record = Record(timestamp_delta=(1 << 63) - 1, offset_delta=5)
    batch = new_batch([]).with_records([record, record._replace(timestamp_delta=-(1 << 63))])
    batch.base_offset = (1 << 63) - 2
    batch.base_timestamp = 1 << 62
    data = batch.to_bytes()
    assert rows(read([data])) == expected([data])


def test_control_records_need_keys_of_four_bytes() -> None:
    batches = [new_batch([Record(key=key)]) for key in (None, b"abc", b"abcd")]
    for batch in batches:
        batch.attributes |= 0x20
    _, found, _ = read([batch.to_bytes(fix_crc=True) for batch in batches])
    assert found.state.tolist() == [INVALID, INVALID, VALID]


def test_capacity_grows_for_headers() -> None:
    headers = tuple((f"h{n}", b"%d" % n) for n in range(40))
    data = new_batch([Record(headers=headers)] * 9).to_bytes()
    wrong = bytearray(data)
    wrong[HEADER_BYTES + 20] ^= 1
    torn = parse_records(bytes(wrong))[0].to_bytes(fix_crc=True)
    fields = [data, torn, data] * 3
    assert rows(read(fields)) == expected(fields)
