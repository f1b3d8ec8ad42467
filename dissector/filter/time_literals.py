"""Times as text in filters; without a zone they are in the local time zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

_TIME = re.compile(
    r"""
    (?P<date>\d{4}-\d{2}-\d{2}|[A-Z][a-z]{2}\ +\d{1,2},\ \d{4})
    (?:(?:T|\ +)(?P<hour>\d{2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<rest>\d{1,9}))?)?)?
    \ ?(?P<zone>Z|UTC|[+-]\d{2}:?\d{2})?
    """,
    re.VERBOSE,
)


def parse_time_ns(text: str) -> int:
    """
    Return a time in nanoseconds since the epoch.

    Forms: `2026-11-23 13:57:58.123456789`, with `T`, without seconds or time of day, with `Z`,
    `UTC` or `+01:00`; and `Nov 23, 2026 13:57:58.5`, as Wireshark prints it.

    Raises:
        ValueError: It is not a time.
    """
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise ValueError(text)
    form = "%Y-%m-%d" if found["date"][0].isdigit() else "%b %d, %Y"
    day = datetime.strptime(" ".join(found["date"].split()), form)
    hour, minute, second = (int(found[name] or 0) for name in ("hour", "minute", "second"))
    moment = day.replace(hour=hour, minute=minute, second=second)
    zone = found["zone"]
    if zone in ("Z", "UTC"):
        moment = moment.replace(tzinfo=UTC)
    elif zone:
        offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
        moment = moment.replace(tzinfo=timezone(-offset if zone[0] == "-" else offset))
    else:
        moment = moment.astimezone()
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    seconds = (moment - epoch) // timedelta(seconds=1)
    return seconds * 1_000_000_000 + int((found["rest"] or "").ljust(9, "0"))
