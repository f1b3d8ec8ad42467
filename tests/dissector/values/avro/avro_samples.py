"""Random Avro schemas and values for them, with the values in the types of JSON."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

Sample = tuple[Any, Any]
"""A value as writers take it, and in the types of JSON."""

Draw = Callable[[Random], Sample]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WORDS = ("", "a", "Ünïcode", "line\nbreak", '"quoted"', "x" * 200, "\x7f\x85\u2028 \u2029\\", "𝄞")


def _number(bits: int) -> Draw:
    def draw(random: Random) -> Sample:
        value = random.choice([0, 1, -1, 63, -64, 64, 2 ** (bits - 1) - 1, -(2 ** (bits - 1))])
        value = random.choice([value, random.randrange(-(2 ** (bits - 1)), 2 ** (bits - 1))])
        return value, value

    return draw


def _float(random: Random) -> Sample:
    value = random.choice([0.0, -1.5, random.random() * 1e9, math.inf, -math.inf])
    (value,) = struct.unpack("<f", struct.pack("<f", value))
    words = {math.inf: "Infinity", -math.inf: "-Infinity"}
    return value, words.get(value, value)


def _double(random: Random) -> Sample:
    value = random.choice(
        [
            struct.unpack("<d", random.randbytes(8))[0],
            random.randrange(10**8) / 100,
            random.randrange(-(10**17), 10**17) * 10.0 ** random.randrange(-30, 30),
            random.choice([0.0, -0.0, 5e-324, 1e22, 1e16, 1e-4, 9.5e-5, 2.0**-1022]),
        ]
    )
    return (value, value) if math.isfinite(value) else (0.5, 0.5)


def _date(random: Random) -> Sample:
    days = random.randrange(-10_000, 40_000)
    return days, (_EPOCH + timedelta(days=days)).date().isoformat()


def _clock(unit: int, places: int) -> Draw:
    def draw(random: Random) -> Sample:
        value = random.randrange(86_400 * unit)
        return (
            value,
            f"{_EPOCH + timedelta(seconds=value // unit):%H:%M:%S}.{value % unit:0{places}}",
        )

    return draw


def _decimal(scale: int) -> Draw:
    def draw(random: Random) -> Sample:
        value = random.choice([0, 7, -5, 10**14, -(10**15), random.randrange(-(10**17), 10**17)])
        data = value.to_bytes(8, "big", signed=True)
        if not scale:
            return data, value
        digits = f"{abs(value):0{scale + 1}}"
        text = f"{'-' if value < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"
        return data, float(text) if len(digits) <= 15 else text

    return draw


def _text(random: Random) -> Sample:
    word = random.choice(_WORDS)
    return word, word


def _bytes(random: Random) -> Sample:
    value = random.randbytes(random.randrange(200))
    return value, value.hex()


def _time(unit: int, places: int) -> Draw:
    def draw(random: Random) -> Sample:
        value = random.randrange(-(10**9) * unit, 4 * 10**9 * unit)
        second = _EPOCH + timedelta(seconds=value // unit)
        text = f"{second:%Y-%m-%dT%H:%M:%S}.{value % unit:0{places}}Z"
        return value, text

    return draw


_DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 18}

_PRIMITIVES: tuple[tuple[Any, Draw], ...] = (
    ("null", lambda _: (None, None)),
    ("boolean", lambda random: (value := random.random() < 0.5, value)),
    ("int", _number(32)),
    ("long", _number(64)),
    ("float", _float),
    ("double", _float),
    ("double", _double),
    ("string", _text),
    ("bytes", _bytes),
    ({"type": "long", "logicalType": "timestamp-millis"}, _time(1000, 3)),
    ({"type": "long", "logicalType": "timestamp-micros"}, _time(10**6, 6)),
    ({"type": "int", "logicalType": "date"}, _date),
    ({"type": "int", "logicalType": "time-millis"}, _clock(1000, 3)),
    ({"type": "long", "logicalType": "time-micros"}, _clock(10**6, 6)),
    *(
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": scale},
            _decimal(scale),
        )
        for scale in (0, 2, 7)
    ),
)


class Samples:
    """A random schema, and values for it."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._names = 0
        self.schema, self._draw = self._record(0)

    def draw(self) -> Sample:
        """Return a value."""
        return self._draw(self._random)

    def _name(self) -> str:
        self._names += 1
        return f"N{self._names}"

    def _type(self, depth: int) -> tuple[Any, Draw]:
        kinds = [self._record, self._array, self._map, self._enum, self._fixed, self._optional]
        if depth > 3 or self._random.random() < 0.6:
            return self._random.choice(_PRIMITIVES)
        return self._random.choice(kinds)(depth + 1)

    def _record(self, depth: int) -> tuple[Any, Draw]:
        fields = [(f"f{at}", *self._type(depth)) for at in range(self._random.randrange(1, 6))]
        declared = [{"name": name, "type": schema} for name, schema, _ in fields]
        schema: dict[str, Any] = {"type": "record", "name": self._name(), "fields": declared}
        if self._random.random() < 0.3:
            schema["namespace"] = "some.space"

        def draw(random: Random) -> Sample:
            drawn = {name: draw_field(random) for name, _, draw_field in fields}
            return (
                {name: each[0] for name, each in drawn.items()},
                {name: each[1] for name, each in drawn.items()},
            )

        return schema, draw

    def _array(self, depth: int) -> tuple[Any, Draw]:
        items, draw_item = self._type(depth)

        def draw(random: Random) -> Sample:
            drawn = [draw_item(random) for _ in range(random.choice([0, 1, 3, 70]))]
            return [each[0] for each in drawn], [each[1] for each in drawn]

        return {"type": "array", "items": items}, draw

    def _map(self, depth: int) -> tuple[Any, Draw]:
        values, draw_value = self._type(depth)

        def draw(random: Random) -> Sample:
            drawn = {f"k{at}": draw_value(random) for at in range(random.choice([0, 1, 5]))}
            return (
                {name: each[0] for name, each in drawn.items()},
                {name: each[1] for name, each in drawn.items()},
            )

        return {"type": "map", "values": values}, draw

    def _enum(self, depth: int) -> tuple[Any, Draw]:
        symbols = [f"S{at}" for at in range(self._random.choice([1, 2, 100]))]

        def draw(random: Random) -> Sample:
            symbol = random.choice(symbols)
            return symbol, symbol

        return {"type": "enum", "name": self._name(), "symbols": symbols}, draw

    def _fixed(self, depth: int) -> tuple[Any, Draw]:
        size = self._random.choice([0, 1, 16])

        def draw(random: Random) -> Sample:
            value = random.randbytes(size)
            return value, value.hex()

        return {"type": "fixed", "name": self._name(), "size": size}, draw

    def _optional(self, depth: int) -> tuple[Any, Draw]:
        inner, draw_inner = self._type(depth)
        if inner == "null" or isinstance(inner, list):
            return inner, draw_inner

        def draw(random: Random) -> Sample:
            return (None, None) if random.random() < 0.5 else draw_inner(random)

        return ["null", inner], draw
