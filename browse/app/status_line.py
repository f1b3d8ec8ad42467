"""The status line: rows read, rows shown, running work."""

from __future__ import annotations

import time
from collections import deque

from rich.text import Text
from textual.widgets import Static

from browse.app.list_session import ListSession
from dissector.view.text.escape import escaped

_RATE_S = 2.0
"""Time over which the rate of packets is measured."""


class StatusLine(Static):
    """
    State of the session in one line.

    Attributes:
        notice: A message until the next key.
        field: The chosen field while its pane has the focus.
    """

    DEFAULT_CSS = """
    StatusLine { height: 1; background: $panel; color: $foreground; padding: 0 1; }
    """

    def __init__(self, *, id: str) -> None:
        super().__init__("", id=id, markup=False)
        self.notice = ""
        self.field = ""
        self._shown = ""
        self._rate = PacketRate()

    def show_notice(self, notice: str) -> None:
        """Show a notice until the next key."""
        self.notice = notice

    def show(self, session: ListSession, place: int) -> None:
        """Show the state of the session, with the position of the chosen row."""
        reading = session.access.first.capture.reading
        rate = None
        if session.access.is_live and reading is not None:
            rate = self._rate.at(time.monotonic(), reading.packets)
        facts = _facts(session, place, self.notice or self.field, rate)
        text = escaped("  ".join(filter(None, facts)))
        if text != self._shown:
            self._shown = text
            self.update(Text(text, no_wrap=True, overflow="ellipsis"))


def _facts(session: ListSession, place: int, notice: str, rate: float | None) -> list[str]:
    count, total = len(session.shown), len(session.shown.parts)
    row = f"{place + 1:,}/" if count else ""
    of_all = f" of {total:,}" if count != total else ""
    problems = len(session.problems())
    return [
        notice,
        f"{row}{count:,}{of_all} {session.mode.name}",
        "and more: filter for these" if session.is_full else "",
        _reading(session, rate),
        f"{problems:,} problem{'s' * (problems != 1)}: !" if problems else "",
        f"sorted by {session.shown.sort.name}" if session.shown.sort else "",
        session.access.title,
    ]


def _reading(session: ListSession, rate: float | None) -> str:
    """Describe the running work."""
    run = session.run
    if run is not None and not run.is_done:
        return f"{_share('searching', run.share)}, Esc cancels"
    loading = session.loading
    if loading.is_done:
        return "incomplete" if loading.failure else ""
    if session.access.is_live:
        return _live(session, rate)
    return _share("loading", loading.share)


def _live(session: ListSession, rate: float | None) -> str:
    """Describe a live capture by the packets so far, and those of the last second."""
    reading = session.access.first.capture.reading
    if reading is None:
        return "live"
    a_second = "" if rate is None else f", {rate:,.0f} a second"
    return f"live, {reading.packets:,} packets{a_second}"


class PacketRate:
    """Packets a second, over the last seconds."""

    def __init__(self) -> None:
        self._counts: deque[tuple[float, int]] = deque()

    def at(self, now_s: float, packets: int) -> float | None:
        """Return the rate, given the number of all packets; None at first."""
        self._counts.append((now_s, packets))
        while len(self._counts) > 1 and self._counts[1][0] <= now_s - _RATE_S:
            self._counts.popleft()
        begin_s, before = self._counts[0]
        return None if now_s - begin_s < _RATE_S / 2 else (packets - before) / (now_s - begin_s)


def _share(word: str, share: float | None) -> str:
    return word if share is None else f"{word} {share:.0%}"
