"""The capture of a screen: read once for the list, and reopened for bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dissector.cli.options import Source
from dissector.engine.reading.capture import Window
from dissector.errors import DissectorError, Problem, bug_location


@dataclass(frozen=True)
class CaptureAccess:
    """
    How a capture is read.

    Attributes:
        title: Its name, for people.
        first: The source that fills the list; it is read once.
        reopen: Returns a new source with a filter, or None; also of the bytes that a pipe has
            delivered so far. With True the filter may name columns of records.
        total_bytes: Size of the files; 0 where it is not known.
        show_secrets: Whether secrets are shown.
        is_live: Whether more may come at any time.
    """

    title: str
    first: Source
    reopen: Callable[[str | None, bool], Source]
    total_bytes: int = 0
    show_secrets: bool = False
    is_live: bool = False


class Pass:
    """
    A reading of the capture by a thread, which another one may cancel.

    Attributes:
        source: The source.
        problems: Problems of the files so far: name and problem.
        failure: Why the reading ended early; empty if it did not.
        error: The error behind it, unless it is a bug.
        is_done: Whether it has ended, successfully or not.
        is_cancelled: Whether it was to end.
    """

    def __init__(self, source: Source, total_bytes: int = 0) -> None:
        self.source = source
        self.problems: list[tuple[str, Problem]] = []
        self.failure = ""
        self.error: DissectorError | None = None
        self.is_done = False
        self.is_cancelled = False
        self._total_bytes = total_bytes

    @property
    def share(self) -> float | None:
        """How much of the files is read, from 0 to 1; None where it is not known."""
        reading = self.source.capture.reading
        if not self._total_bytes or reading is None:
            return None
        return min(1.0, reading.source.file_bytes / self._total_bytes)

    def cancel(self) -> None:
        """End the reading soon, without its last exchanges."""
        self.is_cancelled = True
        self.source.capture.options.stop.request()

    def windows(self, *, gleaning: bool = True) -> Iterator[Window]:
        """Yield the windows until the end, or until `cancel`."""
        for window in self.source.capture.windows(gleaning=gleaning):
            if self.is_cancelled:
                return
            self.problems += window.problems
            yield window
            del window

    def run(self, work: Callable[[], None]) -> None:
        """Do the work of the thread; an exception becomes `failure`."""
        try:
            work()
        except DissectorError as error:
            self.error, self.failure = error, str(error)
        except OSError as error:
            self.failure = f"{error.filename or 'capture'}: {error.strerror or error}"
        except Exception as error:
            place = bug_location(error)
            self.failure = f"a bug in kafkashark: {type(error).__name__} in {place}: {error}"
        finally:
            self.is_done = True
