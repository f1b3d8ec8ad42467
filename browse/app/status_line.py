"""The status line: rows read, rows shown, running work."""

from __future__ import annotations

from rich.text import Text
from textual.widgets import Static

from browse.app.list_session import ListSession
from dissector.view.text.escape import escaped


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

    def show_notice(self, notice: str) -> None:
        """Show a notice until the next key."""
        self.notice = notice

    def show(self, session: ListSession, place: int) -> None:
        """Show the state of the session, with the position of the chosen row."""
        text = escaped("  ".join(filter(None, _facts(session, place, self.notice or self.field))))
        if text != self._shown:
            self._shown = text
            self.update(Text(text, no_wrap=True, overflow="ellipsis"))


def _facts(session: ListSession, place: int, notice: str) -> list[str]:
    count, total = len(session.shown), len(session.shown.parts)
    row = f"{place + 1:,}/" if count else ""
    of_all = f" of {total:,}" if count != total else ""
    problems = len(session.problems())
    return [
        notice,
        f"{row}{count:,}{of_all} {session.mode.name}",
        "and more: filter for these" if session.is_full else "",
        _reading(session),
        f"{problems:,} problem{'s' * (problems != 1)}: !" if problems else "",
        f"sorted by {session.shown.sort.name}" if session.shown.sort else "",
        session.access.title,
    ]


def _reading(session: ListSession) -> str:
    """Describe the running work."""
    run = session.run
    if run is not None and not run.is_done:
        return f"{_share('searching', run.share)}, Esc cancels"
    loading = session.loading
    if loading.is_done:
        return "incomplete" if loading.failure else ""
    if session.access.is_live:
        return _live(session)
    return _share("loading", loading.share)


def _live(session: ListSession) -> str:
    """Describe a live capture by the packets so far."""
    reading = session.access.first.capture.reading
    return "live" if reading is None else f"live, {reading.packets:,} packets"


def _share(word: str, share: float | None) -> str:
    return word if share is None else f"{word} {share:.0%}"
