"""
Avro's own framings: container files, and single objects with the fingerprint of their schema.

Source: https://avro.apache.org/docs/1.12.0/specification/#object-container-files and
#single-object-encoding
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

from dissector.values.avro import avro_types as types
from dissector.values.avro.avro_schema import AvroSchema
from dissector.values.value_limits import Room, ValueProblem, output_limit

CONTAINER_MAGIC = b"Obj\x01"
SINGLE_OBJECT_MAGIC = b"\xc3\x01"
FINGERPRINT_END = 10
"""Where the value of a single object begins."""

_SYNC_BYTES = 16


def container_values(data: bytes) -> list[Any]:
    """
    Return the objects of a container file.

    Raises:
        ValueProblem: It is not one, or its compression is not supported.
    """
    room = Room(len(data))
    try:
        metadata, at = _metadata(data, room)
        schema = AvroSchema(metadata.get("avro.schema", b"").decode())
        sync = data[at : at + _SYNC_BYTES]
        at += _SYNC_BYTES
        values: list[Any] = []
        while at < len(data):
            count, at = types.read_long(data, at, room)
            size, at = types.read_long(data, at, room)
            end = at + size
            if size < 0 or data[end : end + _SYNC_BYTES] != sync:
                raise ValueProblem(f"no end of a block at byte {end:,}")
            room.take(count)
            _add_block(
                values, _plain(data[at:end], metadata.get("avro.codec")), count, schema, room
            )
            at = end + _SYNC_BYTES
    except (IndexError, UnicodeDecodeError, struct.error):
        raise ValueProblem(types.ENDS_EARLY) from None
    return values


def _metadata(data: bytes, room: Room) -> tuple[dict[str, bytes], int]:
    read = types.map_reader(types.read_string, types.read_bytes)
    items, at = read(data, len(CONTAINER_MAGIC), room)
    return {key: bytes.fromhex(value) for key, value in items.items()}, at


def _add_block(values: list[Any], block: bytes, count: int, schema: AvroSchema, room: Room) -> None:
    at = 0
    for _ in range(count):
        value, at = schema.value_at(block, at, room)
        values.append(value)
    if at > len(block):
        raise ValueProblem(types.ENDS_EARLY)
    if at != len(block):
        raise ValueProblem(f"{len(block) - at:,} bytes behind the objects of a block")


def _plain(block: bytes, codec: bytes | None) -> bytes:
    match codec:
        case None | b"null":
            return block
        case b"deflate":
            return inflated(block, -zlib.MAX_WBITS)
    raise ValueProblem(f"compression {codec.decode('ascii', 'replace')[:20]!r} of a container file")


def inflated(data: bytes, window_bits: int = zlib.MAX_WBITS) -> bytes:
    """
    Return the content of a zlib stream.

    Raises:
        ValueProblem: It is damaged, or too large.
    """
    most = output_limit(len(data))
    stream = zlib.decompressobj(window_bits)
    try:
        content = stream.decompress(data, most)
    except zlib.error as error:
        raise ValueProblem(f"its compression is damaged ({error})") from None
    if not stream.eof:
        raise ValueProblem(f"it is cut off, or has more than {most:,} bytes decompressed")
    return content
