"""
The records inside a `records` field, for filters of exchanges: decompressed, batch by batch.

Rows of `records` have them as columns; a filter of exchanges tests all records of a field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from dissector.protocol.records_fields import read_field

if TYPE_CHECKING:
    from dissector.protocol.records.rows import Row


def record_part(name: str) -> Callable[[object], Iterable[object]]:
    """Return a step from a `records` field to one column of each of its records."""

    def parts(data: object) -> Iterator[object]:
        for record in _records(data) if isinstance(data, bytes) else ():
            match name:
                case "header_key" | "header_value":
                    yield from (header[name == "header_value"] for header in record.headers)
                case "is_control":
                    yield record.control is not None
                case _:
                    yield getattr(record, name)

    return parts


def batch_part(*names: str) -> Callable[[object], Iterable[object]]:
    """Return a step from a `records` field to an attribute of each batch; the first it has."""

    def parts(data: object) -> Iterator[object]:
        for batch in read_field(data, True) if isinstance(data, bytes) else ():
            found = [getattr(batch, name) for name in names if hasattr(batch, name)]
            yield from found[:1]

    return parts


def text_pieces(data: bytes) -> Iterable[bytes]:
    """Yield keys, values and headers of the records in a field."""
    for record in _records(data):
        pieces = (record.key, record.value, *(value for _, value in record.headers))
        yield from (each for each in pieces if each is not None)
        yield from (key.encode("utf-8", "surrogateescape") for key, _ in record.headers)


def _records(data: bytes) -> Iterable[Row]:
    # Imports Construct, which takes longer than reading a small capture.
    from dissector.protocol.records.rows import iter_records

    return iter_records(read_field(data, True))
