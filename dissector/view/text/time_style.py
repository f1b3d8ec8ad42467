"""Times as tshark's option -t shows them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

STYLES = {
    "a": "local time of day",
    "ad": "local date and time",
    "r": "seconds since the first packet",
    "d": "seconds since the row before",
    "e": "seconds since the epoch",
    "u": "UTC time of day",
    "ud": "UTC date and time",
}

_SECOND_NS = 1_000_000_000
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class TimeStyle:
    """
    Formats times of one column, in the order of rows.

    Source: tshark(1), option -t.
    """

    def __init__(self, style: str, begin_ns: Callable[[], int], *, utc: bool = False) -> None:
        """Create the style, a key of `STYLES`; `begin_ns` returns the first packet's time."""
        self._style = style
        self._begin_ns = begin_ns
        self._in_utc = utc or style.startswith("u")
        self._previous_ns: dict[str, int] = {}

    def text(self, time_ns: int, column: str = "") -> str:
        """Return a time as text; the row before is that with the last time of the same column."""
        match self._style:
            case "r":
                return _seconds(time_ns - self._begin_ns())
            case "e":
                return _seconds(time_ns)
            case "d":
                previous_ns = self._previous_ns.get(column, time_ns)
                self._previous_ns[column] = time_ns
                return _seconds(time_ns - previous_ns)
            case _:
                return self._clock(time_ns)

    def _clock(self, time_ns: int) -> str:
        seconds, rest_ns = divmod(time_ns, _SECOND_NS)
        form = "%Y-%m-%d %H:%M:%S" if self._style.endswith("d") else "%H:%M:%S"
        try:
            clock = time.gmtime(seconds) if self._in_utc else time.localtime(seconds)
        except (OverflowError, ValueError, OSError):
            from dissector.view.text.value_text import time_text  # rare

            return time_text(time_ns)
        return f"{time.strftime(form, clock)}{_fraction(rest_ns)}{'Z' if self._in_utc else ''}"


def _frame_time(time_ns: int, begin_ns: int) -> str:
    """Return a time as Wireshark prints it: `Nov 21, 2026 10:46:31.908450000 CET`."""
    seconds, rest_ns = divmod(time_ns, _SECOND_NS)
    try:
        clock = time.localtime(seconds)
    except (OverflowError, ValueError, OSError):
        from dissector.view.text.value_text import time_text  # rare

        return time_text(time_ns)
    return (
        f"{month_day_year(clock)} {time.strftime('%H:%M:%S', clock)}.{rest_ns:09} {clock.tm_zone}"
    )


def month_day_year(clock: time.struct_time) -> str:
    """Return a day as Wireshark prints it: `Nov 21, 2026`."""
    return f"{_MONTHS[clock.tm_mon - 1]} {clock.tm_mday:2}, {clock.tm_year:04}"


def _ns_seconds(duration_ns: int) -> str:
    seconds, rest_ns = divmod(abs(duration_ns), _SECOND_NS)
    return f"{'-' if duration_ns < 0 else ''}{seconds}.{rest_ns:09}"


FRAME_TIMES: Mapping[str, Callable[[int, int], str]] = {
    "frame.time": _frame_time,
    "frame.time_epoch": lambda time_ns, begin_ns: _ns_seconds(time_ns),
    "frame.time_relative": lambda time_ns, begin_ns: _ns_seconds(time_ns - begin_ns),
}
"""
The time of a packet and that of the first packet, as `tshark -T fields` prints them.

Source: output of TShark 4.0.
"""


def _seconds(duration_ns: int) -> str:
    seconds, rest_ns = divmod(abs(duration_ns), _SECOND_NS)
    return f"{'-' if duration_ns < 0 else ''}{seconds}{_fraction(rest_ns)}"


def _fraction(rest_ns: int) -> str:
    """Return a fraction of a second in microseconds, or in nanoseconds if it has them."""
    return f".{rest_ns:09}" if rest_ns % 1000 else f".{rest_ns // 1000:06}"
