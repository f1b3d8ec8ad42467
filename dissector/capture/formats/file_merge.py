"""
Files of one capture in time order: concurrent ones, as of several brokers, are merged by time.

Packets of one file keep their order, also if their times go back. Work is columnar: a window of
several files is made of the parts of their windows up to the earliest of their ends, so each step
uses up the window of one file at least.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import replace

import numpy as np

from dissector.capture.columns import SEVERAL, Bytes, Int64s, Packets
from dissector.capture.formats.file_order import FileBegin
from dissector.capture.formats.window_buffers import single_use

MAX_OPEN = 200
"""Files that are open at a time; more concurrent ones are read one after another."""

MIN_WINDOW_BYTES = 1 << 16


class FileMerge:
    """The windows of files, in time order."""

    def __init__(
        self,
        files: Iterable[FileBegin],
        windows_of: Callable[[int, FileMerge], Generator[Packets, None, None]],
    ) -> None:
        """Start; `windows_of` yields the windows of a file, by its number, for this merge."""
        self._waiting = deque(files)
        self._windows_of = windows_of
        self._open: list[_OpenFile] = []

    def window_bytes(self, most: int) -> int:
        """Return how much of each file is to be in memory, of the bytes for all."""
        return max(most // max(len(self._open), 1), min(most, MIN_WINDOW_BYTES))

    def windows(self) -> Generator[Packets, None, None]:
        """Yield windows; their packets are numbered anew by the caller."""
        try:
            while self._waiting or self._open:
                yield from self._fill()
                if not self._open:
                    continue
                end_ns = min(each.last_ns for each in self._open)
                if len(self._open) == 1 and not self._opens_until(end_ns):
                    yield self._open[0].take_all()
                    continue
                while self._opens_until(end_ns):
                    self._open_next()
                    yield from self._fill()
                    end_ns = min(each.last_ns for each in self._open)
                yield _merged(list(self._parts(end_ns)))
        finally:
            for each in self._open:
                each.windows.close()

    def _parts(self, end_ns: int) -> Iterator[tuple[Packets, Int64s]]:
        """
        Take the packets up to a time, at which the window of a file ends.

        That file may go on with the same time: so of the files after it only earlier packets.
        """
        for each in self._open:
            if each.has(end_ns):
                is_last = each.last_ns <= end_ns
                yield each.take_until(end_ns)
                if is_last:
                    end_ns -= 1

    def _opens_until(self, end_ns: int) -> bool:
        """Return whether a file begins before a time, and can be opened."""
        if not self._waiting or len(self._open) >= MAX_OPEN:
            return False
        first_ns = self._waiting[0].first_ns
        return first_ns is not None and first_ns <= end_ns

    def _open_next(self) -> None:
        number = self._waiting.popleft().number
        self._open.append(_OpenFile(self._windows_of(number, self)))

    def _fill(self) -> Iterator[Packets]:
        """Give each open file a window with packets; yield those without."""
        if not self._open and self._waiting:
            self._open_next()
        for each in list(self._open):
            yield from each.fill()
            if each.is_empty:
                self._open.remove(each)


class _OpenFile:
    """
    A file that is read.

    Attributes:
        windows: Its windows.
    """

    def __init__(self, windows: Generator[Packets, None, None]) -> None:
        self.windows = windows
        self._window: Packets | None = None
        self._keys: Int64s = np.zeros(0, np.int64)
        self._at = 0

    @property
    def is_empty(self) -> bool:
        """Whether no packets are left."""
        return self._window is None

    @property
    def last_ns(self) -> int:
        """The latest time up to the last packet of the window."""
        return int(self._keys[-1])

    def has(self, end_ns: int) -> bool:
        """Return whether the window has packets up to a time."""
        return bool(self._keys[self._at] <= end_ns)

    def fill(self) -> Iterator[Packets]:
        """Read the next window with packets if none is left; yield those without."""
        before_ns = self._keys[-1:]
        while self._window is None:
            window = next(self.windows, None)
            if window is None:
                return
            if len(window):
                self._window, self._at = window, 0
                keys = np.concatenate([before_ns, window.time_ns])
                self._keys = np.maximum.accumulate(keys)[len(before_ns) :]
            else:
                yield window
            del window

    def take_all(self) -> Packets:
        """Return the rest of the window."""
        return self.take_until(self.last_ns)[0]

    def take_until(self, end_ns: int) -> tuple[Packets, Int64s]:
        """Return the packets of the window up to a time, and the times to order them by."""
        window, first = self._window, self._at
        assert window is not None
        end = int(np.searchsorted(self._keys, end_ns, side="right"))
        keys = self._keys[first:end]
        taken = window if end - first == len(window) else part_of_window(window, first, end)
        if end == len(window):
            self._window = None
        else:
            self._at = end
            # Reported once.
            self._window = replace(window, problems=[], tls_secrets=[])
        return taken, keys


def part_of_window(window: Packets, first: int, end: int) -> Packets:
    """Return some packets of a window, with their bytes only."""
    starts, captured = window.start[first:end], window.captured[first:end]
    begin, stop = int(starts.min()), int((starts + captured).max())
    return replace(
        window,
        data=window.data[begin:stop],
        base=window.base + begin,
        start=starts - begin,
        captured=captured,
        time_ns=window.time_ns[first:end],
        original=window.original[first:end],
        link=window.link[first:end],
        file=window.file[first:end],
    )


def _merged(parts: list[tuple[Packets, Int64s]]) -> Packets:
    """Return one window of the packets of several files."""
    if len(parts) == 1:
        return parts[0][0]
    windows = [window for window, _ in parts]
    order = np.argsort(np.concatenate([keys for _, keys in parts]), kind="stable")
    sizes = [len(each.data) for each in windows]
    offsets = np.cumsum([0, *sizes])
    data: Bytes = single_use(int(offsets[-1]))
    np.concatenate([each.data for each in windows], out=data)
    counts = [len(each) for each in windows]
    shift = np.repeat(offsets[:-1], counts)
    base = np.repeat(np.array([each.base for each in windows], np.int64), counts)

    def column(name: str) -> np.ndarray:
        whole: np.ndarray = np.concatenate([getattr(each, name) for each in windows])[order]
        return whole

    return replace(
        windows[0],
        data=data,
        start=column("start") + shift[order],
        captured=column("captured"),
        time_ns=column("time_ns"),
        original=column("original"),
        link=column("link"),
        file=column("file"),
        problems=[problem for each in windows for problem in each.problems],
        tls_secrets=[secret for each in windows for secret in each.tls_secrets],
        path_index=SEVERAL,
        base=0,
        bases=(base - shift)[order],
    )
