from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dissector.errors import DecodeError, EncodeError
from dissector.protocol.records.header_text import header_text
from dissector.protocol.records.record import Record, locate_error, read_records, write_records
from dissector.protocol.records.record_constructs import RECORD, varint
from tests.dissector.protocol.records.record_values import HEADERS

ALL = 1 << 31

RAW_RECORDS = st.lists(
    st.builds(
        Record,
        attributes=st.integers(-128, 127),
        timestamp_delta=st.integers(-(1 << 63), (1 << 63) - 1),
        offset_delta=st.integers(-(1 << 31), (1 << 31) - 1),
        key=st.none() | st.binary(max_size=200),
        value=st.none() | st.binary(max_size=20000),
        headers=HEADERS,
    ),
    max_size=8,
)

TABLE = [
    (Record(), "0c 00 00 00 01 01 00"),
    (Record(key=b"", value=b""), "0c 00 00 00 00 00 00"),
    (Record(0, 3, 1, b"key", None), "12 00 06 02 06 6b6579 01 00"),
    (Record(-1, -1, 64, None, b"v"), "10 ff 01 8001 01 02 76 00"),
    (Record(headers=(("h", b"x"), ("", None))), "18 00 00 00 01 01 04 02 68 02 78 00 01"),
    (Record(headers=(("\udcff", b""),)), "12 00 00 00 01 01 02 02 ff 00"),
]


@pytest.mark.parametrize(("record", "data"), TABLE)
def test_hand_encoded_records(record: Record, data: str) -> None:
    raw = bytes.fromhex(data)
    assert write_records([record]) == raw
    want = record._replace(
        offset=100 + record.offset_delta, timestamp=1000 + record.timestamp_delta
    )
    assert read_records(raw, ALL, 100, 1000, None) == ([want], len(raw))


@given(RAW_RECORDS)
def test_round_trip(records: list[Record]) -> None:
    data = write_records(records)
    out, stopped = read_records(data, len(records), 0, 0, None)
    assert stopped == len(data)
    assert [record[:6] for record in out] == [record[:6] for record in records]


def declared(data: bytes) -> tuple[list[Record], int]:
    """Decode records by the declaration, as the reference for `read_records`."""
    records: list[Record] = []
    at = 0
    while at < len(data):
        stream = io.BytesIO(data[at:])
        try:
            size = varint.parse_stream(stream)
            start = at + stream.tell()
            body = io.BytesIO(data[start : start + size] if size >= 0 else b"")
            fields = RECORD.parse_stream(body)
        except DecodeError:
            break
        if body.tell() != size:
            break
        headers = tuple((header.key, header.value) for header in fields.headers)
        time, offset = fields.timestamp_delta, fields.offset_delta
        values = (fields.attributes, time, offset, fields.key, fields.value, headers, offset, time)
        records.append(Record(*values))
        at = start + size
    return records, at


@given(RAW_RECORDS)
def test_the_loop_equals_the_declaration(records: list[Record]) -> None:
    data = write_records(records)
    assert read_records(data, ALL, 0, 0, None) == declared(data)


def test_long_lengths_and_counts() -> None:
    headers = tuple(("h" * 300, b"v" * n) for n in range(100))
    data = write_records([Record(key=b"k" * 20_000, headers=headers)])
    assert read_records(data, 1, 0, 0, None) == declared(data)
    assert read_records(data, 1, 0, 0, None)[0][0].headers == headers


def test_log_append_time_applies_to_all_records() -> None:
    data = write_records([Record(timestamp_delta=5), Record(timestamp_delta=9)])
    out, _ = read_records(data, 2, 0, 100, 777)
    assert [(r.timestamp_delta, r.timestamp) for r in out] == [(5, 777), (9, 777)]


def test_sums_stay_in_64_bits() -> None:
    top = (1 << 63) - 1
    data = write_records([Record(timestamp_delta=1, offset_delta=1)])
    assert read_records(data, 1, top, top, None)[0][0][6:8] == (-(1 << 63), -(1 << 63))
    data = write_records([Record(timestamp_delta=top)])
    assert read_records(data, 1, 0, 1, None)[0][0].timestamp == -(1 << 63)


def test_number_of_records_is_limited() -> None:
    data = write_records([Record(), Record()])
    assert read_records(data, 1, 0, 0, None)[1] == 7
    assert read_records(data, 0, 0, 0, None) == ([], 0)
    assert read_records(data, -1, 0, 0, None) == ([], 0)


GOOD = "0c 00 00 00 01 01 00 "
LEFT = "bytes are left in the message"
ENDLESS = "varint does not end within"

BAD = [
    # after one good record of 7 bytes: bytes, path, position, what
    ("0d", "length", 7, "length -7 but 0 bytes are left in the batch"),
    ("20 00", "length", 7, "length 16 but 1 bytes are left in the batch"),
    ("80", "length", 8, "1 bytes expected, 0 left"),
    ("ffffffffff7f", "length", 7, "varint does not end within 32 bits"),
    ("00", "attributes", 8, "1 bytes expected, 0 left"),
    ("0e 00 00 00 01 01 00 00", "length", 7, "record ends at byte 14, its length says 15"),
    ("0c 00 00 00 0a 01 00", "key", 11, "length 5 but 2 bytes are left in the message"),
    ("0c 00 00 00 03 01 00", "key", 11, "length -2 is negative"),
    ("0c 00 00 00 01 0a 00", "value", 12, "length 5 but 1 bytes are left in the message"),
    ("0c 00 00 00 01 03 00", "value", 12, "length -2 is negative"),
    ("0c 00 00 00 01 01 08", "headers", 13, "count 4 but 0 bytes are left in the message"),
    ("0c 00 00 00 01 01 01", "headers", 13, "headers are null"),
    ("12 00 00 00 01 01 08 00 00 02", "headers", 13, f"count 4 but 3 {LEFT}"),
    ("12 00 00 00 01 01 02 01 01 00", "headers[0].key", 14, "header key is null"),
    ("12 00 00 00 01 01 02 00 08 00", "headers[0].value", 15, f"length 4 but 1 {LEFT}"),
    ("12 00 00 00 01 01 02 0a 08 00", "headers[0].key", 14, f"length 5 but 2 {LEFT}"),
    ("14 00 00 00 01 01 02 02 68 03 00", "headers[0].value", 16, "length -2 is negative"),
    ("1e 00" + "ff" * 10 + "01 00 00 00", "timestamp_delta", 9, f"{ENDLESS} 64 bits"),
    ("16 00 00 ffffffffff 7f 00 00 00", "offset_delta", 10, f"{ENDLESS} 32 bits"),
]


@pytest.mark.parametrize(("data", "path", "position", "what"), BAD)
def test_an_invalid_record_has_a_problem_with_its_path(
    data: str, path: str, position: int, what: str
) -> None:
    raw = bytes.fromhex(GOOD + data)
    records, stopped = read_records(raw, ALL, 0, 0, None)
    assert (len(records), stopped) == (1, 7)
    error = locate_error(raw, stopped)
    assert (error.path, error.position, error.what) == (path, position, what)


@given(RAW_RECORDS, st.data())
def test_hostile_bytes_stop_the_loop_where_the_declaration_fails(
    records: list[Record], data: st.DataObject
) -> None:
    raw = bytearray(write_records(records)[:500])
    for _ in range(data.draw(st.integers(0, 4))):
        if raw:
            raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    hostile = bytes(raw)
    out, stopped = read_records(hostile, ALL, 0, 0, None)
    assert (out, stopped) == declared(hostile)
    if stopped < len(hostile):
        assert stopped <= locate_error(hostile, stopped).position <= len(hostile)


@given(st.binary(max_size=60))
def test_any_bytes_are_decoded_like_the_declaration(data: bytes) -> None:
    assert read_records(data, ALL, 0, 0, None) == declared(data)


@pytest.mark.parametrize(
    ("record", "path"),
    [
        (Record(key="text"), "records[1].key"),  # type: ignore[arg-type]
        (Record(attributes=300), "records[1].attributes"),
        (Record(offset_delta=1 << 31), "records[1].offset_delta"),
        (Record(timestamp_delta=1 << 63), "records[1].timestamp_delta"),
        (Record(headers=None), "records[1].headers"),  # type: ignore[arg-type]
        (Record(headers=(("k",),)), "records[1].headers"),  # type: ignore[arg-type]
        (Record(headers=((None, b""),)), "records[1].headers[0].key"),  # type: ignore[arg-type]
        (Record(headers=(("k", "v"),)), "records[1].headers[0].value"),  # type: ignore[arg-type]
    ],
)
def test_unencodable_values_are_errors_with_their_path(record: Record, path: str) -> None:
    with pytest.raises(EncodeError) as error:
        write_records([Record(), record])
    assert error.value.path == path


def test_headers_as_text() -> None:
    values = {"k=text": "text", "k=null": None, "k=é": "é".encode(), 'k={"hex": "ff00"}': b"\xff\0"}
    assert {header_text("k", value): value for value in values.values()} == values
