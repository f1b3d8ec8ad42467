"""Opening of captures for the screen: files, growing files, pipes."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from browse.listing.capture_access import CaptureAccess
from browse.listing.pipe_spool import PipeSpool
from dissector.capture.formats.byte_source import StopSignal
from dissector.capture.formats.growing_file import GrowingFile
from dissector.cli.capture_source import Source
from dissector.engine.reading.capture import Capture, Options
from dissector.errors import CaptureError
from dissector.query.selection import Selection
from dissector.values.value_settings import ValueSettings
from dissector.view.text.escape import escaped

FIRST_WINDOW_BYTES = 1 << 20
"""Of the file: some hundred rows, which are shown before the rest is read."""
_MAX_TITLE = 60


@dataclass
class CaptureOpening:
    """
    Settings for opening captures.

    Attributes:
        names: Files of the capture; `-` is the pipe.
        options: Options for each pass; the stop signal is replaced.
        pipe: Input for `-`; None without it.
        end_writer: Ends the process that writes to the pipe, if kafkashark started it.
        follows: Whether the last file grows.
        show_secrets: Show secrets instead of masks.
        title: Name of the captured interface; None for files.
        comments: See `CaptureAccess`.
    """

    names: list[str]
    options: dict[str, Any] = field(default_factory=dict)
    pipe: io.RawIOBase | None = None
    end_writer: Callable[[], None] | None = None
    follows: bool = False
    show_secrets: bool = False
    title: str = ""
    comments: dict[int, list[str]] = field(default_factory=dict)

    def access(self) -> CaptureAccess:
        """
        Return access to the capture.

        Raises:
            CaptureError: The followed file does not exist.
        """
        if self.follows and not Path(self.names[-1]).is_file():
            raise CaptureError(self.names[-1], "no such file")
        spool = None if self.pipe is None else PipeSpool(self.pipe)
        inputs = {self.names[-1]: GrowingFile(self.names[-1])} if self.follows else {}

        def reopen(text: str | None, records: bool) -> Source:
            return self._source(text, records, stdin=spool.reopen() if spool else None)

        first = self._source(
            None,
            False,
            stdin=spool,
            inputs=inputs,
            stop=StopSignal(self.end_writer),
        )
        is_live = self.follows or (spool is not None and spool.poll is not None)
        return CaptureAccess(
            title=escaped(self.title or _title(self.names)),
            first=first,
            reopen=reopen,
            total_bytes=0 if is_live else _total_bytes(self.names),
            show_secrets=self.show_secrets,
            is_live=is_live,
            values=self.options.get("values") or ValueSettings(),
            comments=self.comments,
        )

    def _source(self, text: str | None, records: bool, **more: Any) -> Source:
        more |= {"first_window_bytes": FIRST_WINDOW_BYTES}
        more.setdefault("stop", StopSignal())
        more |= {"packet_facts": frozenset(("comments",)), "comments": self.comments}
        capture = Capture(self.names, Options(**self.options, **more))
        chosen = Selection.of(capture, text, records=records)
        return Source(
            capture, chosen.filter, record_filter=chosen.record_filter, values=chosen.values
        )


def _title(names: list[str]) -> str:
    first = Path(names[0]).name
    text = first if len(names) == 1 else f"{first} and {len(names) - 1} more"
    return text if len(text) <= _MAX_TITLE else f"{text[:_MAX_TITLE]}…"


def _total_bytes(names: list[str]) -> int:
    """Return the size of all files; 0 if one is unknown."""
    sizes = [Path(name).stat().st_size if Path(name).is_file() else 0 for name in names]
    return sum(sizes) if all(sizes) else 0
