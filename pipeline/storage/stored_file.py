"""A file at a path or URI as an input of a capture, which ends at its first unreadable byte."""

from __future__ import annotations

import io
from typing import BinaryIO

from dissector.capture.formats.inputs import Input
from dissector.errors import CaptureError, ReadError
from pipeline.storage.filesystems import ReadablePrefix, open_file
from pipeline.storage.task_attempts import will_be_retried


class StoredFile:
    """A file; an `Input`. Its errors have its name as given."""

    is_rereadable = True
    is_appended = False

    def __init__(self, name: str, location: str) -> None:
        """Start; `location` is the file, for any process."""
        self._name = name
        self._location = location
        self._last: _StoredReader | None = None

    def open(self) -> io.RawIOBase:
        """
        Return a file at the first byte.

        Raises:
            CaptureError: It can't be opened.
        """
        try:
            self._last = _StoredReader(open_file(self._location))
        except CaptureError as error:
            raise type(error)(self._name, error.what, error.position) from None
        return self._last

    @property
    def failure(self) -> ReadError | None:
        """Why the file was not read to its end, the last time it was read; None if it was."""
        failure = None if self._last is None else self._last.failure
        return failure and ReadError(self._name, failure.what, failure.position)


def failure_of(file: Input) -> ReadError | None:
    """Return why a file was not read to its end, the last time; None if it was."""
    return file.failure if isinstance(file, StoredFile) else None


class _StoredReader(ReadablePrefix):
    """A readable prefix that closes its file."""

    def __init__(self, file: BinaryIO) -> None:
        super().__init__(file, is_last_try=not will_be_retried())
        self._opened = file

    def close(self) -> None:
        """Close the file."""
        self._opened.close()
        super().close()
