"""The times of log lines, in every form that layouts of log4j, Docker and Kubernetes write."""

from __future__ import annotations

import re
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dissector.errors import UsageError

LOCAL = "local"

_S = 10**9
_MOST_NS = 2**62
"""The year 2116."""

_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?\s?(Z\b|[+-]\d\d:?\d\d\b)?"
)
_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)?")
_FIELDS = ("@timestamp", "timestamp", "time", "ts", "date", "asctime", "datetime")
"""Names of the time in JSON layouts."""

_zone: ContextVar[str] = ContextVar("log_timezone", default="UTC")


def use_timezone(name: str) -> None:
    """
    Read times without a zone in this one from now on.

    Raises:
        UsageError: It is unknown.
    """
    timezone_of(name)
    _zone.set(name)


def used_timezone() -> str:
    """Return the zone of times without one."""
    return _zone.get()


def timezone_of(name: str) -> tzinfo | None:
    """
    Return a zone: `UTC`, `Europe/Berlin`, `+02:00`; None is that of this machine, `local`.

    Raises:
        UsageError: It is unknown.
    """
    if name == LOCAL:
        return None
    if found := _OFFSET.fullmatch(name):
        sign, hours, minutes = found.groups()
        offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
        if offset < timedelta(hours=24):
            return timezone(-offset if sign == "-" else offset)
    try:
        return UTC if name.upper() in ("UTC", "Z") else ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(
            f"timezone {name!r}: not a zone; give one as Europe/Berlin, +02:00 or local"
        ) from None


class LogTimes:
    """Reads times; those without a zone are in one."""

    def __init__(self, zone: str) -> None:
        self._zone = timezone_of(zone)
        self._seconds: dict[tuple[str, str, str | None], int | None] = {}

    def of_text(self, text: str) -> int | None:
        """Return the time in a text, one with a zone first, in ns since the epoch."""
        found = _TIME.search(text)
        if found is None:
            return None
        if found[4] is None:
            others = (each for each in _TIME.finditer(text, found.end()) if each[4] is not None)
            found = next(others, found)
        day, clock, fraction, zone = found.groups()
        key = day, clock, zone
        if key not in self._seconds:
            if len(self._seconds) > 4096:
                self._seconds.clear()
            self._seconds[key] = self._second(*key)
        second = self._seconds[key]
        if second is None:
            return None
        return _in_range(second * _S + (int(fraction.ljust(9, "0")) if fraction else 0))

    def of_fields(self, fields: dict[str, Any]) -> int | None:
        """Return the time in a line of JSON."""
        instant = fields.get("instant")
        if isinstance(instant, dict) and isinstance(instant.get("epochSecond"), int):
            nanos = instant.get("nanoOfSecond")
            nanos = nanos if isinstance(nanos, int) else 0
            return _in_range(int(instant["epochSecond"]) * _S + nanos)
        for name in ("timeMillis", *_FIELDS):
            value = fields.get(name)
            if isinstance(value, str) and (time_ns := self.of_text(value)) is not None:
                return time_ns
            if isinstance(value, int | float) and not isinstance(value, bool):
                return _of_number(value)
        return None

    def _second(self, day: str, clock: str, zone: str | None) -> int | None:
        try:
            moment = datetime.fromisoformat(f"{day}T{clock}")
            place = self._zone if zone is None else timezone_of("UTC" if zone == "Z" else zone)
            aware = moment.astimezone() if place is None else moment.replace(tzinfo=place)
            return int(aware.timestamp())
        except (UsageError, ValueError, OverflowError, OSError):
            return None


def _in_range(time_ns: int) -> int | None:
    """Return a time if packets can have it."""
    return time_ns if 0 <= time_ns < _MOST_NS else None


def _of_number(value: float) -> int | None:
    """Return a time given as a number of seconds, or of milliseconds."""
    if not 0 <= value < 1e14:
        return None
    if value >= 1e11:
        return round(value * 1000) * 1000
    return round(value * 1e6) * 1000
