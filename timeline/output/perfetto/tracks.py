"""
Tracks of a trace, described before their first packet.

Source: https://perfetto.dev/docs/reference/synthetic-track-event
"""

from __future__ import annotations

from collections.abc import Callable

from dissector.view.text.escape import escaped
from timeline.output.perfetto.packets import packet
from timeline.output.perfetto.protobuf import content, integer

MAX_PROCESSES = 10_000
"""Maximum number of clients and brokers with a process; others share one."""

MAX_CHILDREN = 2_000
"""Maximum number of subjects or partitions with a child track."""

_DESCRIPTOR, _UUID, _NAME, _PROCESS, _PARENT, _COUNTER, _MERGE = 60, 1, 2, 3, 5, 8, 15
"""Fields of TracePacket and TrackDescriptor."""

_PID, _PROCESS_NAME, _UNIT_NAME = 1, 6, 6
"""Fields of ProcessDescriptor and CounterDescriptor."""

_NOT_MERGED = 2
"""Keeps tracks with equal names separate."""


class Tracks:
    """Numbers tracks, and writes their descriptors."""

    def __init__(self, write: Callable[[bytes], object]) -> None:
        """Start without tracks; `write` receives encoded packets."""
        self._write = write
        self._known: dict[tuple[int, str], int] = {}
        self._processes: dict[str, int] = {}
        self._children: dict[int, int] = {}
        self._names: dict[int, str] = {}
        self._count = 0

    def process(self, kind: str, name: str) -> int:
        """Return the track of a process; `kind` is `client` or `broker`."""
        key = f"{kind} {escaped(name)}"
        if key not in self._processes and len(self._processes) >= MAX_PROCESSES:
            key = f"other {kind}s"
        if key not in self._processes:
            pid = len(self._processes) + 1
            described = integer(_PID, pid) + content(_PROCESS_NAME, key)
            track = self._processes[key] = self._describe(content(_PROCESS, described))
            self._names[track] = key
        return self._processes[key]

    def name(self, process: int) -> str:
        """Return the name of a process."""
        return self._names[process]

    def child(self, parent: int, name: str) -> int:
        """Return the child track with a name, below another track; 0 for no track."""
        return self._child(parent, name, b"")

    def counter(self, parent: int, name: str, unit: str) -> int:
        """Return a counter below another track."""
        return self._child(parent, name, content(_COUNTER, content(_UNIT_NAME, unit)))

    def has_room(self, parent: int, name: str) -> bool:
        """Return whether a track has, or may get, a child with this name."""
        return (parent, name) in self._known or self._children.get(parent, 0) < MAX_CHILDREN

    def _child(self, parent: int, name: str, described: bytes) -> int:
        if (parent, name) not in self._known:
            self._children[parent] = self._children.get(parent, 0) + 1
            described += content(_NAME, escaped(name)) + integer(_MERGE, _NOT_MERGED)
            if parent:
                described += integer(_PARENT, parent)
            self._known[parent, name] = self._describe(described)
        return self._known[parent, name]

    def _describe(self, described: bytes) -> int:
        self._count += 1
        self._write(packet(content(_DESCRIPTOR, integer(_UUID, self._count) + described)))
        return self._count
