"""Records to columns: many batches at once, against aiokafka's reader and bare decompression."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from benchmarks.timing import Row, call_us
from dissector.engine.records.batch_scanner import find_batches
from dissector.engine.records.batch_table import HEADER_BYTES, Bytes, Ints
from dissector.engine.records.decompressor import iter_payloads
from dissector.engine.records.record_decoder import read_records
from dissector.protocol.records import Record, build_records, new_batch, new_message_set

BATCH_BYTES = 16_384
"""Default batch size of producers."""

RECORD_BYTES = 165

_VALUE = b'{"order": %9d, "state": "%-9s", "amount": %9.2f, "trace": "%032x", "note": "%-25s"}'

BATCHES = 400
"""Number of distinct batches, to read from memory instead of the cache, as in captures."""


def rows() -> Iterator[Row]:
    """Time the reading of records into columns, including CRC checks."""
    for codec in ("none", "lz4", "zstd"):
        source = random.Random(1)
        at_least = 2.0 if codec == "none" else None
        batches = [_orders(source, codec) for _ in range(BATCHES)]
        yield from _rows(codec, batches, at_least)
    source = random.Random(1)
    sets = [build_records(new_message_set(_records(source))) for _ in range(BATCHES)]
    yield from _rows("message sets", sets)


def _rows(what: str, batches: list[bytes], at_least: float | None = None) -> Iterator[Row]:
    lengths = np.fromiter(map(len, batches), np.int64)
    data = np.frombuffer(b"".join(batches), np.uint8)
    columns = partial(_columns, data, np.cumsum(lengths) - lengths, lengths)
    columns()
    count = columns()
    own_ns = call_us(columns) / count * 1000
    peers: list[tuple[str, Callable[[], object], float | None]]
    peers = [("aiokafka", partial(_aiokafka, batches), at_least)]
    if what in ("lz4", "zstd"):
        peers.append(("decompression alone", partial(_decompress, what, batches), 1 / 1.5))
    for peer, call, target in peers:
        peer_ns = call_us(call) / count * 1000
        figures = f"{own_ns:.0f} ns a record against {peer_ns:.0f} ns"
        yield Row(f"records to columns, {what}", peer, peer_ns / own_ns, figures, target)


def _orders(source: random.Random, codec: str) -> bytes:
    return new_batch(_records(source), codec=codec).to_bytes()


def _records(source: random.Random) -> list[Record]:
    """Return records typical of applications: JSON with repetition."""
    return [
        Record(
            key=b"%012d" % source.randrange(10**9),
            value=_VALUE
            % (
                source.randrange(10**9),
                source.choice((b"open", b"paid", b"shipped")),
                source.random() * 10**6,
                source.randrange(1 << 128),
                source.choice((b"", b"call before delivery", b"leave with the neighbours")),
            ),
            timestamp=1_700_000_000_000 + number * 3,
        )
        for number in range(BATCH_BYTES // RECORD_BYTES)
    ]


def _columns(data: Bytes, starts: Ints, lengths: Ints) -> int:
    """Read all records; return their number."""
    held = np.zeros(0, np.uint8)
    whole = np.zeros(len(starts), np.bool_)
    found = find_batches(data, held, starts, lengths, whole, message_sets=True)
    unit = np.arange(len(found))
    return sum(
        len(read_records(data, held, found, each))
        for each in iter_payloads(data, held, found, unit)
    )


def _decompress(codec: str, batches: list[bytes]) -> None:
    if codec == "lz4":
        import lz4.frame

        for batch in batches:
            lz4.frame.decompress(memoryview(batch)[HEADER_BYTES:])
    else:
        import zstandard

        source = zstandard.ZstdDecompressor()
        for batch in batches:
            source.decompress(memoryview(batch)[HEADER_BYTES:], max_output_size=2 * BATCH_BYTES)


def _aiokafka(batches: list[bytes]) -> None:
    from aiokafka.record.memory_records import MemoryRecords

    for data in batches:
        batches_left = MemoryRecords(data)
        while batches_left.has_next():
            batch = batches_left.next_batch()
            batch.validate_crc()
            for _ in batch:
                pass
