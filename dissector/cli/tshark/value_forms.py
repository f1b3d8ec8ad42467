"""
Values as tshark's JSON has them, by the type that Wireshark gives their name.

Source: `tshark -G fields` of Wireshark 4.0 (types and bases), and its output.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from dissector.protocol.records.compression import CODEC_IDS
from dissector.view.text.time_style import month_day_year
from dissector.view.text.value_text import json_text

TimeText: TypeAlias = Callable[[time.struct_time, int], str]
"""Returns the text of a time in UTC, and its nanoseconds."""

_BYTES = frozenset(
    f"kafka.{name}"
    for name in (
        *("message_key", "message_value", "header_value", "protocol_metadata", "member_metadata"),
        *("member_assignment", "sasl_authentication", "token_hmac"),
    )
)
_TIMES = frozenset(
    f"kafka.{name}"
    for name in (
        *("message_timestamp", "batch_first_timestamp", "batch_last_timestamp"),
        *("commit_timestamp", "token_issue_timestamp", "token_expiry_timestamp"),
        "token_max_timestamp",
    )
)
_HEXADECIMAL = frozenset(
    f"kafka.{name}"
    for name in (
        *("batch_crc", "message_crc", "cluster_authorized_ops", "group_authorized_ops"),
        "topic_authorized_ops",
    )
)
_SIDES = {"CreateTime": 0, "LogAppendTime": 1}
_CODES: Mapping[str, Mapping[str, int]] = {
    "kafka.batch_codec": CODEC_IDS,
    "kafka.batch_timestamp_type": _SIDES,
    "kafka.message_codec": CODEC_IDS,
    "kafka.message_timestamp_type": _SIDES,
}


def value_text(name: str, value: Any, time_text: TimeText) -> str | None:
    """Return a value as text; None if there is none, as of times before 1970."""
    if value is None:
        return None
    if name in _TIMES and isinstance(value, int):
        return _time(value, time_text)
    if name in _HEXADECIMAL and isinstance(value, int):
        return f"0x{value & 0xFFFFFFFF:08x}"
    if name in _BYTES:
        return _with_colons(str(value))
    if codes := _CODES.get(name):
        return str(codes.get(value, str(value).rpartition(" ")[2]))
    if isinstance(value, bool):
        return "1" if value else "0"
    return value if isinstance(value, str) else json_text(value)


def calendar_time(utc: time.struct_time, rest_ns: int) -> str:
    """Return a time as `-T json` has it: `Nov 21, 2026 09:46:37.143000000 UTC`."""
    return f"{month_day_year(utc)} {time.strftime('%H:%M:%S', utc)}.{rest_ns:09} UTC"


def iso_time(utc: time.struct_time, rest_ns: int) -> str:
    """Return a time as `-T ek` has it: `2026-11-21T09:46:37.143000000Z`."""
    return f"{utc.tm_year:04}-{time.strftime('%m-%dT%H:%M:%S', utc)}.{rest_ns:09}Z"


def _time(milliseconds: int, time_text: TimeText) -> str | None:
    seconds, rest_ms = divmod(milliseconds, 1000)
    try:
        utc = time.gmtime(seconds)
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)  # beyond any calendar
    return time_text(utc, rest_ms * 1_000_000) if milliseconds >= 0 else None


def _with_colons(digits: str) -> str:
    """Return bytes with colons; what is masked stays."""
    try:
        return bytes.fromhex(digits).hex(":")
    except ValueError:
        return digits
