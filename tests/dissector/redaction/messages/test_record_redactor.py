"""Records of one field."""

from __future__ import annotations

import gzip
from types import SimpleNamespace

from dissector.protocol.records import layout
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
