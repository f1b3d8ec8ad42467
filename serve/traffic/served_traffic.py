"""Selection of the exchanges with clients for capture files."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from serve.answers.client_request import ClientRequest
from serve.traffic.traffic_writer import TrafficWriter


class ServedTraffic:
    """
    Writes exchanges with clients to capture files.

    Args:
        record: File for exchanges answered by a fallback.
        keeps_all: Write all exchanges to a temporary file, `all_path`.

    Attributes:
        all_path: The capture of all exchanges; None unless `keeps_all`.

    Raises:
        UsageError: A file cannot be written.
    """

    def __init__(self, record: str | Path | None = None, *, keeps_all: bool = False) -> None:
        self._added = None if record is None else TrafficWriter(record)
        self.all_path: str | None = None
        self._all: TrafficWriter | None = None
        if keeps_all:
            self._folder = tempfile.TemporaryDirectory(prefix="kafkashark-serve-")
            self.all_path = str(Path(self._folder.name) / "served.pcapng")
            self._all = TrafficWriter(self.all_path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the files; delete the temporary one."""
        for each in (self._added, self._all):
            if each is not None:
                each.close()
        if self._all is not None:
            self._folder.cleanup()

    def observe(self, request: ClientRequest, response: bytes | None) -> None:
        """Write an exchange to the files that include it."""
        writers = [self._added if request.answered_by else None, self._all]
        for writer in writers:
            if writer is not None and request.addresses is not None:
                frame = request.received_ns, request.message.frame
                writer.write(request.connection, request.addresses, frame, response)
