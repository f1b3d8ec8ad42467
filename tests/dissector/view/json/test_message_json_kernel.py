"""Message sets written in bulk equal those written by Python."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dissector.engine.records import (
    batch_scanner,
    checksum,
    decompressor,
    legacy_decoder,
    record_decoder,
)
from dissector.engine.tape import tape
from dissector.protocol.records import (
    Record,
    build_records,
    layout,
    new_batch,
    new_message_set,
    parse_records,
)
from dissector.protocol.records.message_set import with_crc
from dissector.view.json import body_kernel, bulk_bodies
from tests.dissector.protocol.records.record_values import BATCHES, CODECS
from tests.dissector.protocol.records.sets import damaged_sets, wrap
from tests.dissector.view.bulk import check, fetched, produce
from tests.example_counts import examples
from tests.kernel_modes import both
from tests.reference.correlation.exchange_rows import ExchangeRow

mode = both(
    batch_scanner, body_kernel, checksum, legacy_decoder, decompressor, record_decoder, tape
)

RECORDS = [
    Record(timestamp=5, key=b"k", value=b"v" * 700),
    Record(timestamp=-1, key=b"", value=None),
    Record(timestamp=1 << 50, key=None, value=b"\xff\0"),
]
APPENDED = 0x08


def message_set(records: list[Record] = RECORDS, **more: Any) -> bytes:
    return build_records(new_message_set(records, **more))


def with_attributes(message: bytes, attributes: int) -> bytes:
    """Return a message with other attributes."""
    at = layout.MAGIC_AT + 1
    return with_crc(message[:at] + bytes([attributes]) + message[at + 1 :])


def written(field: bytes) -> list[dict[str, Any]]:
    """Return the batches written for a field, equal in bulk and by Python."""
    rows = [produce(field, version=2), *(fetched(field, version=v) for v in range(4))]
    texts = check(rows)
    partitions: list[dict[str, Any]] = json.loads(texts[0][0] or "")["topic_data"][0][
        "partition_data"
    ]
    batches: list[dict[str, Any]] = partitions[0]["records"]
    return batches


@pytest.mark.thinned(2)
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.usefixtures("no_python")
def test_messages_are_written_by_the_loop(codec: str, magic: int) -> None:
    first = message_set(magic=magic, codec=codec, base_offset=70)
    content = first + message_set(RECORDS[:1], magic=magic, codec=codec)
    cut = [content[:-size] for size in (1, 9, 30)] + [content + content[:11]]
    assert all(each.problems == [] for each in parse_records(content))
    rows = [*(produce(content, None, b"", version=v) for v in range(3)), fetched(*cut, version=3)]
    texts = check([*rows, *rows])
    assert (texts[0][0] or "").count('"value": "' + "76" * 700) == 2


@pytest.mark.usefixtures("no_python")
def test_offsets_and_times_of_wrappers() -> None:
    wrapper = new_message_set(RECORDS, codec="gzip", base_offset=70)[0]
    appended = replace(wrapper, attributes=wrapper.attributes | APPENDED, timestamp=99)
    absolute = replace(wrapper, offset=0)
    sets = [wrapper, appended, absolute]
    batches = written(b"".join(each.to_bytes(fix_crc=True) for each in sets))
    offsets = [[(r["offset"], r["timestamp"]) for r in batch["records"]] for batch in batches]
    assert offsets == [
        [(70, 5), (71, -1), (72, 1 << 50)],
        [(70, 99), (71, 99), (72, 99)],
        [(0, 5), (1, -1), (2, 1 << 50)],
    ]
    assert [batch["timestamp_type"] for batch in batches] == [
        "CreateTime",
        "LogAppendTime",
        "CreateTime",
    ]


@pytest.mark.usefixtures("no_python")
def test_unused_attributes() -> None:
    """Bits without a meaning, and a codec without a value."""
    odd = [
        with_attributes(message_set(RECORDS[1:2], magic=magic), attributes)
        for magic, attributes in (
            *((1, each) for each in (0xF8, 1, 5, 7, 0x70, APPENDED)),
            *((0, each) for each in (0xFF, 3, 6, APPENDED)),
        )
    ]
    batches = written(b"".join(odd))
    assert [batch["codec"] for batch in batches][:4] == ["none", "gzip", "codec 5", "codec 7"]
    assert batches[5]["timestamp_type"] == "LogAppendTime"
    assert batches[9]["timestamp_type"] is None


@pytest.mark.thinned(2)
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("wrong", ["crc", "inner", "size", "short", "nested", "mixed", "codec"])
def test_values_left_to_python(wrong: str, magic: int) -> None:
    right = message_set(magic=magic)
    content = bytearray(right)
    match wrong:
        case "crc":
            content[-1] ^= 1
        case "inner":
            content[-1] ^= 1
            content = bytearray(wrap(bytes(content), "gzip", magic))
        case "size":
            content[11] += 1
        case "short":
            content[8:12] = (13).to_bytes(4, "big")
        case "nested":
            content = bytearray(wrap(wrap(right, "gzip", magic), "snappy", magic))
        case "mixed":
            content = bytearray(wrap(message_set(magic=1 - magic), "gzip", magic))
        case _:
            content = bytearray(with_attributes(message_set(RECORDS[:1], magic=magic), 5))
    check([produce(bytes(content), right, version=2), fetched(right, bytes(content), version=3)])


@pytest.mark.thinned(2)
@given(
    st.lists(
        st.tuples(st.lists(damaged_sets(), max_size=3), st.integers(0, 6)),
        max_size=4,
    )
)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
def test_message_sets_of_all_kinds(given_rows: list[tuple[list[bytes], int]]) -> None:
    """Valid, damaged, nested, truncated; in all versions with message sets."""
    check([row(fields, version) for fields, version in given_rows])


def row(fields: list[bytes], version: int) -> ExchangeRow:
    if version < 3:
        return produce(*fields, version=version)
    return fetched(*fields, version=version - 3)


@pytest.mark.thinned(2)
@given(BATCHES, st.sampled_from(CODECS))
@settings(max_examples=20, deadline=None)
def test_batches_of_magic_2_may_follow(batch: Any, codec: str) -> None:
    field = message_set(codec=codec) + batch.to_bytes()
    check([fetched(field, field[:-1], version=3), fetched(field + message_set(magic=0))])


@pytest.mark.usefixtures("no_python")
def test_capacity_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    contents = [message_set(codec="lz4"), message_set(magic=0), new_batch(RECORDS).to_bytes()]
    rows = [produce(*contents, version=1), fetched(*contents, version=3)] * 2
    texts = check(rows)
    for room in (1, 700, 3000, 5000):
        monkeypatch.setattr(bulk_bodies, "OUT_BYTES", room)
        assert check(rows) == texts


@pytest.mark.usefixtures("no_python")
def test_interleaved_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_bodies, "PORTION_RECORDS", 2)
    monkeypatch.setattr(decompressor, "ARENA_BYTES", 1)
    fields = [message_set(codec=codec, base_offset=9) for codec in CODECS]
    check([fetched(*fields, version=3), fetched(None), *(fetched(each) for each in fields)])


def test_wrappers_are_left_to_python_without_compiled_kernels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(vars(record_decoder.count_messages), "compiled", None)
    check([produce(message_set(codec="gzip"), message_set(), version=1)])


@pytest.mark.parametrize("topic", ["__cluster_metadata", "__consumer_offsets"])
def test_possibly_secret_records_are_left_to_python(topic: str) -> None:
    check([produce(message_set(), topic=topic, version=1)])
