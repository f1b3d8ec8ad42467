"""Writer of exchanges with clients as packets."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, BinaryIO

from dissector.capture.writing.capture_writer import CaptureWriter
from dissector.capture.writing.plain_connections import (
    PlainConnection,
    PlainMessage,
    socket_endpoint,
)
from dissector.errors import UsageError
from dissector.file_roles import open_output

_ETHERNET = 1


class TrafficWriter:
    """
    Writes exchanges to a pcapng file, as plain TCP connections.

    Args:
        path: Path of the file.

    Raises:
        UsageError: The file cannot be written.
    """

    def __init__(self, path: str | Path) -> None:
        try:
            self._file: BinaryIO = open_output(Path(path))
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror}") from None
        self._writer = CaptureWriter(self._file)
        self._writer.start_section()
        self._connections: dict[int, PlainConnection] = {}

    def write(
        self,
        connection: int,
        addresses: tuple[Any, Any],
        request: tuple[int, bytes],
        response: bytes | None,
    ) -> None:
        """
        Write an exchange.

        Args:
            connection: Number of the connection.
            addresses: Address and port of the client, and of the listener.
            request: Time of the request in ns since the epoch, and its frame.
            response: Frame of the response; None without one.
        """
        found = self._connections.get(connection)
        if found is None:
            client, listener = addresses
            found = PlainConnection(socket_endpoint(client), socket_endpoint(listener))
            self._connections[connection] = found
        for each in found.open():
            self._put(request[0], each)
        self._send(found, 0, request[0], request[1])
        if response is not None:
            self._send(found, 1, time.time_ns(), response)
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _send(self, connection: PlainConnection, side: int, time_ns: int, frame: bytes) -> None:
        data = len(frame).to_bytes(4, "big") + frame
        message = PlainMessage(side, connection.sent[side], len(data), len(data))
        for each in connection.message(message, data):
            self._put(time_ns, each)

    def _put(self, time_ns: int, packet: bytes) -> None:
        self._writer.write(time_ns, _ETHERNET, packet, len(packet))
