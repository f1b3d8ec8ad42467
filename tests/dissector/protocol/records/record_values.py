"""Strategies of values for tests of records, and batches of them."""

from __future__ import annotations

from hypothesis import strategies as st

from dissector.protocol.records import LegacyBatch, Record, RecordBatch, new_batch, new_message_set

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TIMES = st.integers(-1, 1 << 42)
HEADERS = st.lists(
    st.tuples(st.text(max_size=6), st.none() | st.binary(max_size=200)), max_size=3
).map(tuple)

RECORDS = st.lists(
    st.builds(
        Record,
        timestamp=TIMES,
        key=st.none() | st.binary(max_size=200),
        value=st.none() | st.binary(max_size=300),
        headers=HEADERS,
    ),
    max_size=12,
)

BATCHES: st.SearchStrategy[RecordBatch] = st.builds(
    new_batch,
    RECORDS,
    codec=st.sampled_from(CODECS),
    base_offset=st.integers(0, 1 << 50),
    producer_id=st.integers(-1, 1 << 40),
    producer_epoch=st.integers(-1, 32767),
    base_sequence=st.integers(-1, (1 << 31) - 1),
    partition_leader_epoch=st.integers(-1, 1000),
    transactional=st.booleans(),
)

MESSAGE_SETS: st.SearchStrategy[list[LegacyBatch]] = st.builds(
    new_message_set,
    RECORDS,
    magic=st.sampled_from((0, 1)),
    codec=st.sampled_from(CODECS),
    base_offset=st.integers(0, 1 << 50),
)

FIELDS = st.lists(BATCHES.map(lambda batch: [batch]) | MESSAGE_SETS, max_size=3).map(
    lambda groups: [batch for group in groups for batch in group]
)


def problems(batches: list[RecordBatch | LegacyBatch]) -> list[str]:
    """Every problem of a field as text."""
    return [str(problem) for batch in batches for problem in batch.problems]
