"""
Where keys, values and headers lie in records, to replace them in place.

Source: KIP-98 (record), KIP-82 (headers), KIP-32 (messages of magic 0 and 1).
"""

from __future__ import annotations

from typing import NamedTuple

from dissector.protocol.records import layout


class Place(NamedTuple):
    """Where some bytes lie; null ones have no place."""

    start: int
    end: int


class RecordPlaces(NamedTuple):
    """
    The contents of a record.

    Attributes:
        key: The key; None if it is null.
        value: The value; None if it is null.
        header_keys: The names of the headers.
        header_values: The values of the headers that are not null.
    """

    key: Place | None
    value: Place | None
    header_keys: list[Place]
    header_values: list[Place]


def find_records(data: bytes, count: int) -> tuple[list[RecordPlaces], int]:
    """
    Find the contents of records of magic 2.

    Args:
        data: Records one after the other, decompressed.
        count: Expected number of records.

    Returns:
        The records that are whole, and where they end.
    """
    found: list[RecordPlaces] = []
    at = 0
    try:
        while len(found) < count and at < len(data):
            record, end = _read_record(data, at)
            found.append(record)
            at = end
    except (IndexError, ValueError):
        pass
    return found, at


def _read_record(data: bytes, at: int) -> tuple[RecordPlaces, int]:
    size, at = _varint(data, at)
    end = at + size
    if size < 0 or end > len(data):
        raise ValueError
    _, at = _varint(data, at + 1)
    _, at = _varint(data, at)
    key, at = _place(data, at, end)
    value, at = _place(data, at, end)
    count, at = _varint(data, at)
    record = RecordPlaces(key, value, [], [])
    for _ in range(count):
        name, at = _place(data, at, end)
        content, at = _place(data, at, end)
        if name is None:
            raise ValueError
        record.header_keys.append(name)
        record.header_values.extend([content] if content is not None else [])
    if at != end or count < 0:
        raise ValueError
    return record, end


def _place(data: bytes, at: int, end: int) -> tuple[Place | None, int]:
    size, at = _varint(data, at)
    if size < 0:
        return None, at
    if at + size > end:
        raise ValueError
    return Place(at, at + size), at + size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value >> 1 ^ -(value & 1), at
        shift += 7
        if shift > 63:
            raise ValueError


def find_message(data: bytes, start: int, end: int) -> RecordPlaces | None:
    """Find the key and the value of a message of magic 0 or 1; None if it is damaged."""
    magic = data[start + layout.MAGIC_AT]
    at = start + (layout.MESSAGE_1 if magic else layout.MESSAGE_0).size
    places: list[Place | None] = []
    for _ in range(2):
        size = int.from_bytes(data[at : at + 4], "big", signed=True)
        if at + 4 > end or size > end - at - 4 or size < -1:
            return None
        places.append(None if size < 0 else Place(at + 4, at + 4 + size))
        at += 4 + max(size, 0)
    return RecordPlaces(places[0], places[1], [], []) if at == end else None
