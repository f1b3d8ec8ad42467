"""Spills captured requests and responses to a temporary file, so that none stay in memory."""

from __future__ import annotations

import mmap
import tempfile
import weakref
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dissector.engine.exchanges.captured_exchange import CapturedExchange
from dissector.engine.tables.exchange_table import NO_RESPONSE, Exchanges
from dissector.engine.tables.exchange_table import NONE as TABLE_NONE
from dissector.protocol.login_secrets import NOTHING_KNOWN, KnownSecrets

NONE = -1

_MAPPED_BYTES = 4 << 20
"""After this number of bytes read, the mapped pages are released."""

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
    "request_packet": "q",
    "shape": "i",
}


def release_pages(view: mmap.mmap | bytes) -> None:
    """Release the pages of a mapped file from memory, where the system can; they stay readable."""
    if isinstance(view, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        view.madvise(mmap.MADV_DONTNEED)


def _or_none(values: NDArray[np.int64], instead: int = NONE) -> NDArray[np.int64]:
    """Return a column of a window with NONE, or another value, where it has none."""
    return np.where(values == TABLE_NONE, instead, values)


class ExchangeSpill:
    """
    The exchanges of a capture by number, in the order of `add` or of the last `sort`.

    Attributes:
        endpoints: Connection -> addresses of its client and broker.
        columns: The other properties of exchanges, a column each; NONE for an absent value.
    """

    def __init__(self) -> None:
        self.endpoints: dict[int, tuple[str, str]] = {}
        self._known_secrets: dict[int, KnownSecrets] = {}
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        weakref.finalize(self, self._file.close)
        self._size = 0
        self._is_flushed = True
        self._view: mmap.mmap | bytes | None = None
        self._read_bytes = 0
        self.columns = {name: array(code) for name, code in _COLUMNS.items()}
        self._appends = [each.append for each in self.columns.values()]
        self._client_ids: list[str | None] = []
        self._client_numbers: dict[str | None, int] = {}

    def __len__(self) -> int:
        return len(self.columns["place"])

    def add(self, captured: CapturedExchange, shape: int = NONE) -> int:
        """Write an exchange with the number of its shape; return its own number."""
        self.endpoints[captured.connection] = captured.client, captured.broker
        if captured.known_secrets is not NOTHING_KNOWN:
            self._known_secrets[captured.connection] = captured.known_secrets
        response = captured.response
        answered_ns = captured.response_time_ns
        row = (
            captured.connection,
            captured.api_key,
            captured.api_version,
            captured.correlation_id,
            self._client_number(captured.client_id),
            self._size,
            len(captured.request),
            NONE if response is None else len(response),
            captured.expects_response,
            captured.request_time_ns,
            NONE if answered_ns is None else answered_ns,
            NONE if captured.request_packet is None else captured.request_packet,
            shape,
        )
        for append, value in zip(self._appends, row, strict=True):
            append(value)
        self._size += self._file.write(captured.request + (response or b""))
        self._is_flushed, self._view = False, None
        return len(self) - 1

    def add_rows(
        self,
        table: Exchanges,
        rows: Sequence[int],
        client_ids: Iterable[str | None],
        shapes: Iterable[int],
    ) -> None:
        """
        Write exchanges of a window, without decoding them.

        Args:
            table: The window.
            rows: The rows of the exchanges; all have a request.
            client_ids: Their client ids.
            shapes: The numbers of their shapes.
        """
        at = np.array(rows, np.int64)
        sides = table.request, table.response
        starts = np.stack([each.start[at] for each in sides], 1)
        sizes = np.stack([_or_none(each.captured_bytes[at]) for each in sides], 1)
        written = np.maximum(sizes, 0)
        ends = self._size + np.cumsum(written.sum(1))
        columns = (
            table.connection[at],
            _or_none(table.api_key[at]),
            _or_none(table.api_version[at]),
            _or_none(table.correlation_id[at], 0),
            np.fromiter(map(self._client_number, client_ids), np.int64, len(at)),
            ends - written.sum(1),
            *sizes.T,
            table.status[at] != NO_RESPONSE,
            *(_or_none(each.time_ns[at]) for each in sides),
            table.request.packet[at] + 1,
            np.fromiter(shapes, np.int64, len(at)),
        )
        for column, values in zip(self.columns.values(), columns, strict=True):
            column.frombytes(values.astype(column.typecode).tobytes())
        pieces = zip(starts.ravel().tolist(), written.ravel().tolist(), strict=True)
        self._file.writelines(table.bytes_at(start, size) for start, size in pieces if size)
        self._size = int(ends[-1]) if len(ends) else self._size
        self._is_flushed, self._view = False, None
        for row in dict(zip(table.connection[at].tolist(), rows, strict=True)).values():
            known = table.known_secrets(row)
            if known is not NOTHING_KNOWN:
                self._known_secrets[int(table.connection[row])] = known

    def _client_number(self, client_id: str | None) -> int:
        number = self._client_numbers.setdefault(client_id, len(self._client_ids))
        if number == len(self._client_ids):
            self._client_ids.append(client_id)
        return number

    def get(self, number: int) -> CapturedExchange:
        """Return an exchange."""
        columns = self.columns
        data, request_bytes = self._frames(number)
        response_bytes = columns["response_bytes"][number]
        connection = columns["connection"][number]
        answered_ns = columns["response_time_ns"][number]
        packet = columns["request_packet"][number]
        return CapturedExchange(
            connection,
            *self.endpoints[connection],
            columns["api_key"][number],
            columns["api_version"][number],
            columns["correlation_id"][number],
            self._client_ids[columns["client_id"][number]],
            data[:request_bytes],
            None if response_bytes == NONE else data[request_bytes:],
            bool(columns["is_due"][number]),
            columns["request_time_ns"][number],
            None if answered_ns == NONE else answered_ns,
            None if packet == NONE else packet,
            self._known_secrets.get(connection, NOTHING_KNOWN),
        )

    def view(self) -> mmap.mmap | bytes:
        """Map all frames, each exchange at its `place`; nothing may be added afterwards."""
        self._flush()
        if not self._size:
            return b""
        return mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)

    def _frames(self, number: int) -> tuple[bytes, int]:
        """Return request and response of an exchange concatenated, and the size of the request."""
        columns = self.columns
        request_bytes, response_bytes = (
            columns["request_bytes"][number],
            columns["response_bytes"][number],
        )
        place = columns["place"][number]
        size = request_bytes + max(response_bytes, 0)
        if self._view is None:
            self._view = self.view()
        data = self._view[place : place + size]
        self._read_bytes += size
        if self._read_bytes > _MAPPED_BYTES:
            self._read_bytes = 0
            release_pages(self._view)
        return data, request_bytes

    def times(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return for each exchange the times of request and response, and its connection."""
        columns = self.columns
        request_ns, response_ns = (
            np.frombuffer(columns[name], np.int64)
            for name in ("request_time_ns", "response_time_ns")
        )
        return request_ns, response_ns, np.array(columns["connection"], np.int64)

    def sort(self, order: NDArray[np.integer[Any]]) -> None:
        """Renumber the exchanges: `order` has their former numbers in the new order."""
        for name, column in self.columns.items():
            rows = np.frombuffer(column, column.typecode)[order]
            self.columns[name] = array(column.typecode, rows.tobytes())
        self._appends = [each.append for each in self.columns.values()]

    def connection(self, number: int) -> int:
        """Return the connection of an exchange."""
        return int(self.columns["connection"][number])

    def times_ns(self, number: int) -> tuple[int, int | None]:
        """Return when request and response of an exchange were complete."""
        answered_ns = self.columns["response_time_ns"][number]
        begun_ns = self.columns["request_time_ns"][number]
        return begun_ns, None if answered_ns == NONE else answered_ns

    def _flush(self) -> None:
        if not self._is_flushed:
            self._file.flush()
            self._is_flushed = True

    def close(self) -> None:
        """Close and delete the file."""
        self._file.close()
