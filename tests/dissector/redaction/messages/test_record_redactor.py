"""Records of one field."""

from __future__ import annotations

import gzip
from types import SimpleNamespace

import pytest

from dissector.protocol.records import (
    Record,
    iter_records,
    layout,
    new_batch,
    new_message_set,
    parse_records,
)
from dissector.protocol.records.batch import with_crc
from dissector.protocol.records.limits import DEFAULT
from dissector.redaction.messages.record_redactor import RecordRedactor
from dissector.redaction.messages.values import ValueRedactor
from dissector.redaction.pseudonyms.pseudonyms import Pseudonyms

RECORD = bytes.fromhex("10 00 00 00 01 04 7374 00")
"""Eight bytes behind its length: no key, the value `st`, no headers."""

GZIP = 1


def batch(count: int) -> bytes:
    payload = gzip.compress(RECORD * count, mtime=0)
    length = layout.MIN_BATCH_LENGTH + len(payload)
    numbers = (0, length, 0, 2, 0, GZIP, count - 1, 0, 0, -1, -1, -1, count)
    fields = dict(zip(layout.BATCH.names, numbers, strict=True))
    header = layout.BATCH.pack(SimpleNamespace(**fields))
    return with_crc(header + payload)


def test_records_beyond_the_limit_become_zeros() -> None:
    field = batch(20_000)
    limit = DEFAULT.records_of(len(field))
    assert 0 < limit < 20_000
    values = ValueRedactor(Pseudonyms(b"a key of the test"))
    redactor = RecordRedactor(values, lambda embedded: bytes(len(embedded.data)))
    redacted = redactor.redact(field, "orders")
    assert (len(redacted), redactor.lost_batches) == (len(field), 0)
    records = gzip.decompress(redacted[layout.BATCH.size :])
    begun, rest = records[: limit * len(RECORD)], records[limit * len(RECORD) :]
    assert len(records) == 20_000 * len(RECORD)
    assert (b"st" in begun, begun[:: len(RECORD)]) == (False, RECORD[:1] * limit)
    assert rest == bytes(len(rest))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_records_of_each_magic_and_codec_are_redacted_in_place(magic: int, codec: str) -> None:
    """The same length and the same records, valid checksums, and none of the contents."""
    secrets = b"customer-4711", b"a lamp for anna"
    records = [Record(n, key=secrets[0], value=secrets[1], timestamp=5) for n in range(9)]
    if magic == 2:
        field = new_batch(records, codec=codec).to_bytes()
    else:
        messages = new_message_set(records, magic=magic, codec=codec)
        field = b"".join(each.to_bytes() for each in messages)
    values = ValueRedactor(Pseudonyms(b"a key of the test"))
    redactor = RecordRedactor(values, lambda embedded: bytes(len(embedded.data)))
    redacted = redactor.redact(field, "orders")
    assert (len(redacted), redactor.lost_batches) == (len(field), 0)
    batches = parse_records(redacted)
    assert all(each.crc_ok and not each.problems for each in batches)
    found = list(iter_records(batches))
    assert [(row.offset, row.magic) for row in found] == [(n, magic) for n in range(9)]
    for row in found:
        assert [len(row.key or b""), len(row.value or b"")] == [len(each) for each in secrets]
        assert row.key not in secrets
        assert row.value not in secrets
    for end in range(0, len(field), 4):  # a batch that is cut off keeps its size, shows no content
        part = redactor.redact(field[:end], "orders")
        assert len(part) == end
        assert not any(each in part for each in secrets)
