"""A spool for report rows: in memory first, then in a temporary file."""

from __future__ import annotations

import json
import tempfile
import weakref
from collections.abc import Iterator
from itertools import islice

from dissector.view.text.value_text import jsonable
from replay.model.row import Row

_IN_MEMORY_BYTES = 16 << 20


class RowSpill:
    """A spool of rows in insertion order."""

    def __init__(self) -> None:
        self._count = 0
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES, "w+")  # noqa: SIM115
        weakref.finalize(self, self._file.close)

    def __len__(self) -> int:
        return self._count

    def add(self, row: Row) -> None:
        """Append a row."""
        self._count += 1
        self._file.write(json.dumps(jsonable(row)) + "\n")

    def rows(self, limit: int | None = None) -> Iterator[Row]:
        """Yield all rows, or at most `limit` of them."""
        self._file.seek(0)
        try:
            yield from map(json.loads, islice(self._file, limit))
        finally:
            self._file.seek(0, 2)
