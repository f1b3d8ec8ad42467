"""Readers of generated schemas with values for them, whole and damaged; and columns of values."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest

from dissector.engine.tables.column_types import Coded, Headers, SliceBuffers, Slices
from dissector.values.schemas.registry_entries import add_entry
from dissector.values.schemas.schema_store import SchemaStore
from dissector.values.topic_formats import TopicFormats
from dissector.values.value_reader import ValueReader
from tests.corpus import fast_and_long
from tests.dissector.values.avro.avro_samples import Samples

fastavro = pytest.importorskip("fastavro")
pytest.importorskip("google.protobuf")

from tests.dissector.values.protobuf import proto_samples  # noqa: E402

PREFIX = b"\x00\x00\x00\x00\x07"
SEEDS = fast_and_long([range(8)], [range(first, first + 100) for first in range(100, 1_100, 100)])
HOSTILE_SEEDS = fast_and_long([range(5)], [range(at, at + 10) for at in range(10, 110, 10)])
NO_HEADERS: Mapping[int, bytes] = {}


def reader_of(schema: Any, kind: str = "AVRO") -> ValueReader:
    store = SchemaStore()
    text = schema if kind == "PROTOBUF" else json.dumps(schema)
    entry = {"id": 7, "subject": "t-value", "version": 1, "schema": text, "schemaType": kind}
    add_entry(store, entry)
    return ValueReader(store, TopicFormats())


def damaged(data: bytes, random: Random) -> Iterator[bytes]:
    yield data[: random.randrange(5, len(data) + 1)]
    yield data + b"\x00"
    for _ in range(4):
        changed = bytearray(data)
        changed[random.randrange(5, len(data) + 1) - 1] = random.randrange(256)
        yield bytes(changed)


def avro_case(random: Random) -> tuple[ValueReader, list[bytes]]:
    """Return a reader of a schema, and three values."""
    samples = Samples(random)
    parsed, written = fastavro.parse_schema(samples.schema), []
    for _ in range(3):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, parsed, samples.draw()[0])
        written.append(PREFIX + out.getvalue())
    return reader_of(samples.schema), written


def proto_case(random: Random) -> tuple[ValueReader, list[bytes]]:
    samples = proto_samples.ProtoSamples(random)
    reader = reader_of(proto_samples.text_of(samples.file), "PROTOBUF")
    written = [PREFIX + b"\x00" + samples.draw().SerializeToString() for _ in range(3)]
    return reader, written


CASES = {"avro": avro_case, "proto": proto_case}


def spoiled(data: bytes, random: Random) -> bytes:
    """Return a value with a few changed, removed, repeated or random bytes behind its prefix."""
    content = bytearray(data[5:])
    for _ in range(random.choice((1, 1, 2, 5))):
        at = random.randrange(len(content) + 1)
        match random.randrange(5):
            case 0:
                content[at : at + 1] = random.choice(EXTREMES)
            case 1:
                content[at : at + 1] = random.randbytes(random.randrange(12))
            case 2:
                del content[at : at + random.randrange(9)]
            case 3:
                content[at:at] = content[at : at + random.randrange(30)]
            case 4:
                content[random.randrange(len(content) + 1) :] = content[at:]
    return PREFIX + bytes(content)


EXTREMES = (
    b"\xff" * 9 + b"\x01",
    b"\xfe" + b"\xff" * 8 + b"\x01",
    b"\xff" * 9 + b"\x7f",
    b"\x80" * 9 + b"\x00",
    b"\x80\x00",
    b"\xff\xff\xff\xff\x0f",
    b"\x00\x00\x00\x00\x00\x00\xf0\x7f",
    b"\xc3\xa9",
    b"\xed\xa0\x80",
)
"""Numbers of the most bytes, too large ones, an infinity, texts that are UTF-8 and not."""


def damages(data: bytes, random: Random) -> Iterator[bytes]:
    yield data
    yield from damaged(data, random)


def is_small(data: bytes) -> bool:
    """Return whether a value is read fast, once for each of its paths; some have megabytes."""
    return len(data) < 100_000


def columns_of(
    contents: Sequence[bytes], headers: Mapping[int, bytes] = NO_HEADERS
) -> tuple[Coded, Slices, Headers]:
    """
    Return the topic, the contents and the headers of records; they lie in all three buffers.

    Args:
        contents: Keys or values.
        headers: The key of a header by the row; each has `PREFIX` for a value.
    """
    sizes = np.array([len(each) for each in contents], np.int64)
    whole = np.frombuffer(b"".join(contents), np.uint8)
    starts = np.cumsum(sizes) - sizes
    first, second = (int(starts[len(starts) * part // 3]) for part in (1, 2))
    added = np.frombuffer(b"".join((PREFIX, *(headers[row] for row in sorted(headers)))), np.uint8)
    buffers = SliceBuffers(
        whole[:first], whole[first:second], np.concatenate((whole[second:], added))
    )
    count = np.array([row in headers for row in range(len(contents))], np.int64)
    lengths = np.array([len(headers[row]) for row in sorted(headers)], np.int64)
    at = len(whole) + len(PREFIX) + np.cumsum(lengths) - lengths
    values = Slices(np.full(len(headers), len(whole)), np.full(len(headers), 5), buffers)
    found = Headers(np.cumsum(count) - count, count, Slices(at, lengths, buffers), values)
    return Coded(np.zeros(len(contents), np.int64), ["t"]), Slices(starts, sizes, buffers), found
