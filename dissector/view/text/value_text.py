"""Conversion of decoded values to JSON and to text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from dissector.protocol.records.header_text import header_text
from dissector.view.text.escape import safe_json

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND_NS = 1_000_000_000


def jsonable(value: Any) -> Any:
    """
    Return a decoded value in the types of JSON.

    Bytes become lower-case hex, a uuid its canonical text, keys text (unknown tags: `{"77":
    "0a"}`); `NaN`, `Infinity` and `-Infinity`, which JSON lacks, become these words.
    """
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else _NON_FINITE.get(value, "NaN")
        case bytes() | bytearray() | memoryview():
            return value.hex()
        case Mapping():
            return {str(key): jsonable(each) for key, each in value.items()}
        case list() | tuple():
            return [jsonable(each) for each in value]
        case _:
            return str(value)


_NON_FINITE = {math.inf: "Infinity", -math.inf: "-Infinity"}


def json_text(value: Any) -> str:
    """Return a value as one line of JSON that is safe to print and can be encoded as UTF-8."""
    return safe_json(json.dumps(jsonable(value), ensure_ascii=False, allow_nan=False))


def text_or_hex(data: bytes | str | None) -> str | dict[str, str] | None:
    """Return the key, value or header value of a record: text if it is UTF-8, else its hex."""
    if data is None or isinstance(data, str):
        return data
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return {"hex": data.hex()}


def record_json(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row of `records` with key, value and header values converted by `text_or_hex`."""
    headers = [
        {"key": header["key"], "value": text_or_hex(header["value"])} for header in row["headers"]
    ]
    return {
        **row,
        "key": text_or_hex(row["key"]),
        "value": text_or_hex(row["value"]),
        "headers": headers,
    }


def bytes_text(data: bytes | str | None) -> str | None:
    """Return the key or value of a record as one text: itself if it is UTF-8, else `0x` and hex."""
    text = text_or_hex(data)
    return f"0x{text['hex']}" if isinstance(text, dict) else text


def header_texts(headers: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return each header of a record as one text, `key=value`."""
    return [header_text(each["key"], each["value"]) for each in headers]


def time_text(time_ns: int) -> str:
    """
    Return a time in UTC to the nanosecond: `2023-11-14 22:13:20.000000001Z`.

    A time outside the years 1 to 9999 stays a number of nanoseconds.
    """
    seconds, rest_ns = divmod(time_ns, _SECOND_NS)
    try:
        second = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return f"{time_ns} ns"
    return f"{second.isoformat(' ')[:19]}.{rest_ns:09}Z"


def time_ms_text(time_ms: int) -> str:
    """Return a time in UTC to the millisecond; see `time_text`."""
    text = time_text(time_ms * 1_000_000)
    return f"{text[:-7]}Z" if text.endswith("Z") else f"{time_ms} ms"
