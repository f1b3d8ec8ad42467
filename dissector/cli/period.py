"""The period of `--since` and `--until`, as tests of a display filter."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import partial

from dissector.capture.formats.capture_reader import is_file
from dissector.errors import UsageError

_SECOND_NS = 1_000_000_000

_CLOCK = re.compile(
    r"(?P<hour>[01]?\d|2[0-3]):(?P<minute>[0-5]\d)(?::(?P<second>[0-5]\d)(?:[.,](?P<rest>\d{1,9}))?)?"
    r" ?(?P<zone>Z|UTC|[+-](?:0\d|1[0-4]):?[0-5]\d)?"
)
_SECONDS = re.compile(r"\+?(?P<whole>\d{1,11})(?:\.(?P<rest>\d{1,9}))?(?P<unit>ms|s|m|min|h|d)?")

_UNITS_NS = {
    "ms": 1_000_000,
    "s": _SECOND_NS,
    "m": 60 * _SECOND_NS,
    "min": 60 * _SECOND_NS,
    "h": 3600 * _SECOND_NS,
    "d": 86_400 * _SECOND_NS,
}
_FIRST_EPOCH_S = 100_000_000
"""Numbers from here on, without a unit, are seconds since the epoch: 1973 or later."""

_HALF_DAY_NS = 12 * 3600 * _SECOND_NS

FORMS = "10:42, 10:42:30Z, 2026-11-26T10:42:30+01:00, 90 or 5m after the first packet"
"""The forms of a time, for help and errors."""


def in_period(
    filter_text: str | None,
    since: str | None,
    until: str | None,
    captures: Sequence[str],
    *,
    utc: bool = False,
    live: bool = False,
) -> str | None:
    """
    Return a display filter for the exchanges that pass another one and overlap a period.

    An exchange overlaps it if a packet that completed one of its messages is not before its begin,
    and one is before its end.

    Args:
        filter_text: The other filter; None without one.
        since: Begin of the period; None: of the capture.
        until: End of the period; None: of the capture.
        captures: The captures: a time of day is on the day of their first packet.
        utc: Whether times without a zone are in UTC; else they are in the local zone.
        live: Whether the captures are captured now.

    Raises:
        UsageError: A time has another form, or the end is before the begin.
    """
    begin_ns = partial(_begin_ns, captures, live=live)
    tests, bounds = [], []
    for option, sign, text in (("--since", ">=", since), ("--until", "<", until)):
        if text is not None:
            name, bound = _bound(option, text.strip(), begin_ns, utc=utc)
            shown = f'"{_iso(bound)}"' if name == "frame.time" else f"{bound / _SECOND_NS:.9f}"
            tests.append(f"{name} {sign} {shown}")
            bounds.append((name, bound))
    if len(bounds) == 2 and bounds[0][0] == bounds[1][0] and bounds[0][1] >= bounds[1][1]:
        raise UsageError(f"--until {until} is not after --since {since}")
    if filter_text is not None:
        tests.append(f"({filter_text})" if tests else filter_text)
    return " and ".join(tests) or None


def _bound(option: str, text: str, begin_ns: Callable[[str], int], *, utc: bool) -> tuple[str, int]:
    """Return the name that a filter compares, and a time in ns."""
    if found := _SECONDS.fullmatch(text):
        number_ns = int(found["whole"]) * _SECOND_NS + int((found["rest"] or "").ljust(9, "0"))
        if found["unit"]:
            return "frame.time_relative", number_ns * _UNITS_NS[found["unit"]] // _SECOND_NS
        is_epoch = int(found["whole"]) >= _FIRST_EPOCH_S
        return "frame.time" if is_epoch else "frame.time_relative", number_ns
    if found := _CLOCK.fullmatch(text):
        return "frame.time", _time_of_day(begin_ns(option), found, utc=utc)
    from dissector.filter.time_literals import parse_time_ns

    has_zone = re.search(r"(Z|UTC|[+-]\d{2}:?\d{2})$", text[10:])
    try:
        return "frame.time", parse_time_ns(text + "Z" if utc and not has_zone else text)
    except (ValueError, OverflowError):
        raise UsageError(f"{option} takes a time, such as {FORMS}; not {text!r}") from None


def _time_of_day(begin_ns: int, found: re.Match[str], *, utc: bool) -> int:
    """Return a time of day that is at most 12 hours before the first packet."""
    zone = _zone(found["zone"], utc=utc)
    first = datetime.fromtimestamp(begin_ns // _SECOND_NS, zone)
    rest_ns = int((found["rest"] or "").ljust(9, "0"))
    hour, minute, second = (int(found[name] or 0) for name in ("hour", "minute", "second"))
    for day in range(2):
        date = first.replace(tzinfo=None, microsecond=0) + timedelta(days=day)
        moment = date.replace(hour=hour, minute=minute, second=second, tzinfo=zone)
        time_ns = int(moment.astimezone(UTC).timestamp()) * _SECOND_NS + rest_ns
        if time_ns >= begin_ns - _HALF_DAY_NS:
            break
    return time_ns


def _zone(text: str | None, *, utc: bool) -> tzinfo | None:
    """Return the zone of a time; None is the local one."""
    if text in ("Z", "UTC") or (text is None and utc):
        return UTC
    if text is None:
        return None
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[-2:]))
    return timezone(-offset if text[0] == "-" else offset)


def _begin_ns(captures: Sequence[str], option: str, *, live: bool) -> int:
    """
    Return the time of the first packet; of a live capture the time now.

    Raises:
        UsageError: It can't be read before the capture is.
    """
    if live:
        return time.time_ns()
    for name in captures:
        if not is_file(name):
            raise UsageError(f"{option} with a time of day takes files; add the date for {name}")
    from dissector.engine.reading.segment_source import FileSource

    source = FileSource(captures, window_bytes=1 << 16)
    for _ in source.windows():
        if source.packets:
            break
    return source.begin_ns


def _iso(time_ns: int) -> str:
    seconds, rest_ns = divmod(time_ns, _SECOND_NS)
    moment = datetime(1970, 1, 1) + timedelta(seconds=seconds)
    return f"{moment.isoformat(sep=' ')}.{rest_ns:09}Z"
