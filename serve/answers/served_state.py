"""State shared by all clients: the recording, and their progress through it."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Sequence

from construct import Container

from serve.recording.served_recording import Recording

Address = tuple[str, int]

_WILDCARDS = ("", "0.0.0.0", "::")
"""Wildcard hosts of listeners."""


class ServedState:
    """
    The state of a served capture.

    Attributes:
        recording: The capture.
        addresses: Node id -> address of its listener.
        reached_ns: Captured time of the newest repeated answer.
        latency_s: Captured latency of the last exchange taken.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.addresses: dict[int, Address] = {}
        self.reached_ns = 0
        self.latency_s = 0.0
        self._appended = asyncio.Event()

    def addresses_at(self, local_host: str) -> dict[int, Address]:
        """Return listener addresses for a client, given the local address of its connection."""
        return {
            node: (local_host or host if host in _WILDCARDS else host, port)
            for node, (host, port) in self.addresses.items()
        }

    def take(self, keys: Sequence[Hashable]) -> int | None:
        """Take an exchange by its keys, and advance the progress."""
        number = self.recording.index.take(keys)
        if number is not None:
            self.reach(number)
        return number

    def reach(self, number: int) -> None:
        """Advance the progress to an exchange."""
        begun_ns, answered_ns = self.recording.spill.times_ns(number)
        self.reached_ns = max(self.reached_ns, answered_ns or begun_ns)
        self.latency_s = self.recording.latency_s(number)

    def take_response(self, keys: Sequence[Hashable]) -> Container | None:
        """Take an exchange; return its canonical response, or None if no exchange matches."""
        number = self.take(keys)
        return None if number is None else self.recording.response(number)

    def announce_append(self) -> None:
        """Wake fetches waiting for records."""
        self._appended.set()
        self._appended = asyncio.Event()

    async def wait_for_append(self, timeout_s: float) -> None:
        """Wait for an append, at most for the timeout."""
        try:
            await asyncio.wait_for(self._appended.wait(), timeout_s)
        except TimeoutError:
            return
