"""Captures whose numbers are the largest and the smallest values of their fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import count
from random import Random
from typing import Any
from uuid import UUID

from dissector.protocol.api import Api
from dissector.protocol.apis import all_apis
from dissector.protocol.headers import (
    RequestHeader,
    ResponseHeader,
    request_header_version,
    response_header_version,
)
from dissector.protocol.records import Record, build_records, new_batch
from dissector.protocol.schema import Field, Schema, split_tagged
from tests.default_frames import sized
from tests.tcp_captures import Packet, Wire

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint16": -16, "uint32": -32}
"""Bits of each type, negative where it has no sign."""

_NOT_CHOSEN = ("error_code", "magic")
"""Fields that are 0 in most messages: with an error most rules would not read the rest."""

_HEADER_BYTES = 20
"""Bytes at the begin of a frame that stay as they are: its size and most of its header."""

Choice = Callable[[int, int, Random], int]
"""Chooses an integer from the smallest and the largest of its type."""


def largest(low: int, high: int, chance: Random) -> int:
    """Return the largest value."""
    return high


def smallest(low: int, high: int, chance: Random) -> int:
    """Return the smallest value."""
    return low


def any_extreme(low: int, high: int, chance: Random) -> int:
    """Return one of the extremes, or a usual value beside them."""
    return chance.choice((low, high, high - 1, low + 1, 0, 1, 20_000_000 & high))


CHOICES: dict[str, Choice] = {
    "largest": largest,
    "smallest": smallest,
    "any": any_extreme,
}


class ExtremeMessages:
    """
    Builds messages with extreme numbers and usual names, so that rules compare them.

    Args:
        choose: Chooses each integer.
        seed: Seed of all other values.
    """

    def __init__(self, choose: Choice, seed: str) -> None:
        self._chance = Random(seed)
        self._choose = choose

    def struct(self, fields: Iterable[Field], version: int) -> dict[str, Any]:
        """Return the values of a struct, tagged ones included."""
        plain, tagged = split_tagged(tuple(fields), version)
        return {field.name: self._field(field, version) for field in plain + tagged}

    def records(self) -> bytes:
        """Return a record batch with extreme numbers in its header."""
        number = partial(self._number, "int64")
        small = partial(self._number, "int32")
        batch = new_batch(
            [Record(offset=0, timestamp=0, key=b"k", value=b"v")],
            producer_id=number(),
            producer_epoch=self._number("int16"),
            base_sequence=small(),
        )
        batch.base_offset, batch.last_offset_delta = number(), small()
        batch.base_timestamp, batch.max_timestamp = number(), number()
        batch.partition_leader_epoch = small()
        return build_records([batch])

    def _field(self, field: Field, version: int) -> Any:
        if field.type == "struct":
            return self.struct(field.fields, version)
        if field.type == "[]struct":
            return [self.struct(field.fields, version) for _ in range(self._chance.choice((1, 2)))]
        if field.type.startswith("[]"):
            return [self._plain(field.type[2:], field) for _ in range(2)]
        return self._plain(field.type, field)

    def _plain(self, kind: str, field: Field) -> Any:
        match kind:
            case "bool":
                return self._chance.random() < 0.5
            case "string":
                return "t"
            case "records":
                return self.records()
            case "bytes":
                return self._chance.choice((b"", b"\xff" * 12))
            case "uuid":
                return UUID(int=1)
            case "float64":
                return self._chance.choice((1e308, -1e308, float("inf")))
        if field.name.endswith(_NOT_CHOSEN) and self._chance.random() < 0.8:
            return 0
        return self._number(kind)

    def _number(self, kind: str) -> int:
        bits = _BITS[kind]
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if bits > 0 else (0, (1 << -bits) - 1)
        return self._choose(low, high, self._chance)


def extreme_packets(versions_of: Callable[[Api], Iterable[int]]) -> list[Packet]:
    """
    Return the packets of exchanges with extreme numbers, a connection for each choice and API.

    In a second exchange of each some bytes are overwritten, so that lengths and counts are extreme.

    Args:
        versions_of: Returns the chosen versions of an API.
    """
    wire, ports = Wire(), count(20000)
    for name, choose in CHOICES.items():
        for api in all_apis():
            connection = wire.connect(next(ports)).syn()
            chance = Random(f"{name} {api.name}")
            for number, version in enumerate(versions_of(api)):
                messages = ExtremeMessages(choose, f"{name} {api.name} {version}")
                for is_damaged in (False, True):
                    frames = (
                        make(api, version, 2 * number + is_damaged, messages) for make in _SIDES
                    )
                    request, response = (
                        _overwritten(each, chance) if is_damaged else each for each in frames
                    )
                    connection.client(request).broker(response)
            connection.fin()
    return wire.packets


def newest(api: Api) -> list[int]:
    """Return the newest version of an API."""
    return [api.request.versions.high]


def _request(api: Api, version: int, number: int, messages: ExtremeMessages) -> bytes:
    header = {
        "request_api_key": api.key,
        "request_api_version": version,
        "correlation_id": number,
        "client_id": "c",
    }
    head = RequestHeader.codec(request_header_version(api.key, version)).build(header)
    return sized(head + _body(api.request, version, messages))


def _response(api: Api, version: int, number: int, messages: ExtremeMessages) -> bytes:
    head = ResponseHeader.codec(response_header_version(api.key, version))
    return sized(head.build({"correlation_id": number}) + _body(api.response, version, messages))


_SIDES = (_request, _response)

_COUNTS = (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\x7f\xff", b"\xff\xff\xff\xff\x0f")
"""Large lengths and counts: int32, unsigned varint, int16."""


def _overwritten(frame: bytes, chance: Random) -> bytes:
    """Return a frame of the same size with a large length or count somewhere in its body."""
    large = chance.choice(_COUNTS)
    if len(frame) < _HEADER_BYTES + len(large):
        return frame
    at = chance.randrange(_HEADER_BYTES, len(frame) - len(large) + 1)
    return frame[:at] + large + frame[at + len(large) :]


def _body(schema: Schema, version: int, messages: ExtremeMessages) -> bytes:
    return bytes(schema.codec(version).build(messages.struct(schema.fields, version)))
