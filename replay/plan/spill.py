"""Captured requests and answers put aside, so that no capture is held in memory."""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from replay.model.step import CapturedExchange

NONE = -1

_COLUMNS = {
    "connection": "i",
    "api_key": "h",
    "api_version": "h",
    "correlation_id": "i",
    "client_id": "i",
    "place": "q",
    "request_bytes": "i",
    "response_bytes": "i",
    "is_due": "b",
    "request_time_ns": "q",
    "response_time_ns": "q",
    "shape": "i",
}


class Spool:
    """
    Keeps exchanges by number, in the order in which they are added, or are sorted into.

    Attributes:
        ends: Client and broker of each connection.
        columns: What is known of exchanges but their bytes; NONE where there is nothing.
    """

    def __init__(self) -> None:
        self.ends: dict[int, tuple[str, str]] = {}
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._size = 0
        self._is_written = True
        self.columns = {name: array(code) for name, code in _COLUMNS.items()}
        self._client_ids: list[str | None] = []
        self._client_numbers: dict[str | None, int] = {}

    def __len__(self) -> int:
        return len(self.columns["place"])

    def add(self, captured: CapturedExchange, shape: int = NONE) -> int:
        """Put an exchange aside with the number of its shape, and return its own number."""
        self.ends[captured.connection] = captured.client, captured.broker
        client_id = self._client_numbers.setdefault(captured.client_id, len(self._client_ids))
        if client_id == len(self._client_ids):
            self._client_ids.append(captured.client_id)
        response = captured.response
        answered_ns = captured.response_time_ns
        row = (
            captured.connection,
            captured.api_key,
            captured.api_version,
            captured.correlation_id,
            client_id,
            self._size,
            len(captured.request),
            NONE if response is None else len(response),
            captured.expects_response,
            captured.request_time_ns,
            NONE if answered_ns is None else answered_ns,
            shape,
        )
        for column, value in zip(self.columns.values(), row, strict=True):
            column.append(value)
        self._size += self._file.write(captured.request + (response or b""))
        self._is_written = False
        return len(self) - 1

    def get(self, number: int) -> CapturedExchange:
        """Return an exchange."""
        columns = self.columns
        data, size = self._frames(number)
        more = columns["response_bytes"][number]
        connection = columns["connection"][number]
        answered_ns = columns["response_time_ns"][number]
        return CapturedExchange(
            connection,
            *self.ends[connection],
            columns["api_key"][number],
            columns["api_version"][number],
            columns["correlation_id"][number],
            self._client_ids[columns["client_id"][number]],
            data[:size],
            None if more == NONE else data[size:],
            bool(columns["is_due"][number]),
            columns["request_time_ns"][number],
            None if answered_ns == NONE else answered_ns,
        )

    def view(self) -> mmap.mmap | bytes:
        """Return all frames, each exchange at its place; nothing may be added any more."""
        self._write()
        if not self._size:
            return b""
        return mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)

    def _frames(self, number: int) -> tuple[bytes, int]:
        """Return request and answer of an exchange as one, and where the answer begins."""
        self._write()
        columns = self.columns
        size, more = columns["request_bytes"][number], columns["response_bytes"][number]
        place = columns["place"][number]
        return os.pread(self._file.fileno(), size + more if more > 0 else size, place), size

    def sort(self, order: NDArray[np.integer[Any]]) -> None:
        """Renumber exchanges: the first is the one that had the first number of the order."""
        for name, column in self.columns.items():
            rows = np.frombuffer(column, column.typecode)[order]
            self.columns[name] = array(column.typecode, rows.tobytes())

    def connection(self, number: int) -> int:
        """Return the connection of an exchange."""
        return int(self.columns["connection"][number])

    def times_ns(self, number: int) -> tuple[int, int | None]:
        """Return when request and response of an exchange were complete."""
        answered_ns = self.columns["response_time_ns"][number]
        begun_ns = self.columns["request_time_ns"][number]
        return begun_ns, None if answered_ns == NONE else answered_ns

    def _write(self) -> None:
        if not self._is_written:
            self._file.flush()
            self._is_written = True

    def close(self) -> None:
        """Let go of all frames."""
        self._file.close()
