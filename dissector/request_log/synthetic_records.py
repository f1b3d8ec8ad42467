"""Made-up records of the sizes that a log has, for requests that are sent again."""

from __future__ import annotations

from contextvars import ContextVar
from functools import lru_cache

from dissector.protocol.records import (
    LegacyRecord,
    build_records,
    new_batch,
    new_message_set,
)

_FIRST_OF_MAGIC_1, _FIRST_OF_MAGIC_2 = 2, 3
"""The versions of Produce from which on it may have these."""

_MOST_BYTES = 64 << 20
_are_wanted: ContextVar[bool] = ContextVar("synthetic_records", default=False)


def use_synthetic_records(are_wanted: bool) -> None:
    """Put made-up records into Produce requests of logs from now on, or no longer."""
    _are_wanted.set(are_wanted)


def are_synthetic() -> bool:
    """Return whether Produce requests of logs have made-up records."""
    return _are_wanted.get()


@lru_cache(maxsize=256)
def records_of(size: int, version: int) -> bytes:
    """
    Return a batch with one record, of zeros and without a timestamp.

    Args:
        size: Its bytes; more where no batch is so small; 0: no batch.
        version: Of the Produce request.
    """
    if not 0 < size <= _MOST_BYTES:
        return b""
    value = b""
    for _ in range(3):  # longer values have longer lengths before them
        value = bytes(max(0, len(value) + size - len(_batch(value, version))))
    return _batch(value, version)


def _batch(value: bytes, version: int) -> bytes:
    records = [LegacyRecord(offset=0, timestamp=None, key=None, value=value)]
    if version >= _FIRST_OF_MAGIC_2:
        return build_records([new_batch(records)])
    magic = int(version >= _FIRST_OF_MAGIC_1)
    return build_records(new_message_set(records, magic=magic))
