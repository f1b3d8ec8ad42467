"""Access to a capture: one pass for the list, further ones for bodies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from browse.rows.freed_memory import trim_memory
from dissector.cli.capture_source import Source
from dissector.engine.reading.capture import Window
from dissector.errors import DissectorError, Problem, bug_location, innermost_error
from dissector.values.value_settings import ValueSettings


@dataclass(frozen=True)
class CaptureAccess:
    """
    Ways to read a capture.

    Attributes:
        title: Name of the capture.
        first: Source of the list, read once.
        reopen: Returns a new source with a filter, or None. For pipes it has the bytes received so
            far. With True the filter may name columns of records.
        total_bytes: Size of all files; 0 if unknown.
        show_secrets: Show secrets instead of masks.
        is_live: Whether the capture may grow.
        values: How keys and values are decoded.
        comments: All comments of packets that the user commented, by number from 0; each source
            reads them in place of those in the files.
    """

    title: str
    first: Source
    reopen: Callable[[str | None, bool], Source]
    total_bytes: int = 0
    show_secrets: bool = False
    is_live: bool = False
    values: ValueSettings = field(default_factory=ValueSettings)
    comments: dict[int, list[str]] = field(default_factory=dict)


class Pass:
    """
    A pass over the capture in a thread, with cancellation.

    Attributes:
        source: The source.
        problems: Problems of files so far, with the name of the file.
        failure: Error that ended the pass early; empty without one.
        error: Exception behind `failure`, unless it is a bug.
        is_done: Whether the pass has ended.
        is_cancelled: Whether cancellation was requested.
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
        """Progress from 0 to 1; None if the size is unknown."""
        reading = self.source.capture.reading
        if not self._total_bytes or reading is None:
            return None
        return min(1.0, reading.source.file_bytes / self._total_bytes)

    def cancel(self) -> None:
        """Cancel the pass; its last exchanges are dropped."""
        self.is_cancelled = True
        self.source.capture.options.stop.request()

    def windows(self, *, gleaning: bool = True) -> Iterator[Window]:
        """Yield windows until the end, or until `cancel`."""
        for window in self.source.capture.windows(gleaning=gleaning):
            if self.is_cancelled:
                return
            self.problems += window.problems
            yield window
            del window

    def run(self, work: Callable[[], None]) -> None:
        """Run a function; an exception becomes `failure`."""
        try:
            work()
        except DissectorError as error:
            self.error, self.failure = error, str(error)
        except OSError as error:
            self.failure = f"{error.filename or 'capture'}: {error.strerror or error}"
        except Exception as error:
            self.failure = f"a bug in kafkashark: {bug_location(error)}: {innermost_error(error)}"
        finally:
            trim_memory()
            self.is_done = True
