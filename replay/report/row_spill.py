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


class Kept:
    """A spool of rows in insertion order."""

    def __init__(self) -> None:
        self._count = 0
        self._spool = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES, "w+")  # noqa: SIM115
        weakref.finalize(self, self._spool.close)

    def __len__(self) -> int:
        return self._count

    def add(self, row: Row) -> None:
        """Append a row."""
        self._count += 1
        self._spool.write(json.dumps(jsonable(row)) + "\n")

    def rows(self, most: int | None = None) -> Iterator[Row]:
        """Yield all rows, or at most `most` of them."""
        self._spool.seek(0)
        try:
            yield from map(json.loads, islice(self._spool, most))
        finally:
            self._spool.seek(0, 2)
