"""
The forwarded bytes as packets, written by a thread: a slow disk never delays a client.

The event loop only appends to a queue. What does not fit into it is left out: the sequence numbers
go on, so that every reader of the file sees the gap.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

from dissector.capture.columns import FIN, RST
from dissector.capture.writing.plain_connections import (
    PlainConnection,
    PlainMessage,
    socket_endpoint,
)
from record.packets.recording_files import RecordingFiles

CLIENT, BROKER = 0, 1
"""The sides of a connection."""

_QUEUE_BYTES = 64 << 20
_SEGMENT_BYTES = 60_000
"""Larger segments cost less to write; those of 64 KB do not fit a packet with its headers."""

Work = Callable[[], object]


class PacketSink:
    """
    Writes connections as packets.

    Args:
        files: Where to.
        warn: Called with messages, from the thread too.
        max_bytes: The limit of the bytes that wait for the disk.

    Attributes:
        failure: Why writing ended; empty while it goes on.
        lost_bytes: The bytes that were left out.
        written_bytes: The bytes of clients and brokers in the files.
    """

    def __init__(
        self, files: RecordingFiles, warn: Callable[[str], None], max_bytes: int = _QUEUE_BYTES
    ) -> None:
        self.failure = ""
        self.lost_bytes = 0
        self.written_bytes = 0
        self._files = files
        self._warn = warn
        self._max_bytes = max_bytes
        self._work: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._connections: dict[int, PlainConnection] = {}
        self._gaps: defaultdict[tuple[int, int], int] = defaultdict(int)
        self._put_bytes = 0  # changed by the event loop only
        self._taken_bytes = 0  # changed by the thread only
        self._has_warned = False
        self._thread = threading.Thread(target=self._run, name="kafkashark record", daemon=True)
        self._thread.start()

    def open(self, number: int, client: Any, broker: Any) -> None:
        """Begin a connection between two socket addresses."""
        self._work.put(partial(self._open, number, time.time_ns(), client, broker))

    def add(self, number: int, side: int, data: bytes, time_ns: int | None = None) -> None:
        """Add bytes that a side has sent, just now or at a time in ns since the epoch."""
        size = len(data)
        if self._put_bytes - self._taken_bytes + size > self._max_bytes:
            self._lose(number, side, size, "the disk is too slow for this traffic")
            return
        gap = self._gaps.pop((number, side), 0)
        self._put_bytes += size
        at = time.time_ns() if time_ns is None else time_ns
        self._work.put(partial(self._add, number, side, (at, gap), data))

    def skip(self, number: int, side: int, size: int) -> None:
        """Leave bytes out that a side has sent."""
        self._lose(number, side, size, "too many large messages at once")

    def end(self, number: int, side: int, *, is_reset: bool = False) -> None:
        """Add the end of a side."""
        gap = self._gaps.pop((number, side), 0)
        flags = RST if is_reset else FIN
        self._work.put(partial(self._end, number, side, (time.time_ns(), gap), flags))

    def forget(self, number: int) -> None:
        """Free what is kept of a closed connection."""
        self._work.put(partial(self._connections.pop, number, None))

    def close(self) -> None:
        """Write what waits, and close the files."""
        self._work.put(None)
        self._thread.join()

    def _lose(self, number: int, side: int, size: int, why: str) -> None:
        self._gaps[number, side] += size
        self.lost_bytes += size
        if not self._has_warned and not self.failure:
            self._has_warned = True
            self._warn(f"{why}: the recording has gaps")

    def _run(self) -> None:
        is_open = True
        while is_open:
            waiting = [self._work.get()]
            while not self._work.empty():
                waiting.append(self._work.get())
            try:
                for work in waiting:
                    if work is None:
                        is_open = False
                    else:
                        work()
                if not self.failure:
                    self._files.flush()
            except OSError as error:
                self._fail(error)
        self._files.close()

    def _fail(self, error: OSError) -> None:
        if not self.failure:
            self.failure = error.strerror or str(error)
            self._warn(f"the recording ends here: {self.failure}; connections go on")

    def _open(self, number: int, time_ns: int, client: Any, broker: Any) -> None:
        ends = socket_endpoint(client), socket_endpoint(broker)
        connection = PlainConnection(*ends, segment_bytes=_SEGMENT_BYTES)
        self._connections[number] = connection
        for each in connection.open():
            self._put(time_ns, each)

    def _add(self, number: int, side: int, at: tuple[int, int], data: bytes) -> None:
        self._taken_bytes += len(data)
        connection = self._connections[number]
        time_ns, gap = at
        connection.sent[side] += gap
        message = PlainMessage(side, connection.sent[side], len(data), len(data))
        for each in connection.message(message, data):
            self._put(time_ns, each)
        if not self.failure:
            self.written_bytes += len(data)

    def _end(self, number: int, side: int, at: tuple[int, int], flags: int) -> None:
        connection = self._connections[number]
        time_ns, gap = at
        connection.sent[side] += gap
        for each in connection.end(side, flags):
            self._put(time_ns, each)

    def _put(self, time_ns: int, packet: bytes) -> None:
        if not self.failure:
            try:
                self._files.write(time_ns, packet)
            except OSError as error:
                self._fail(error)
