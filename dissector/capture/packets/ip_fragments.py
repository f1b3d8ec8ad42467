"""Reassembly of IP fragments."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from dissector.capture.columns import Bytes

MAX_INCOMPLETE = 1024
"""Datagrams that may be incomplete at a time; the oldest is dropped for a new one."""

MAX_AGE_NS = 60_000_000_000
"""Time limit for completing a datagram. Source: RFC 8200 4.5 (60 seconds)."""

MAX_DATAGRAM_BYTES = 65535

_MISSING, _PRESENT, _CUT = 0, 1, 2


@dataclass(slots=True)
class Datagram:
    """
    The payload of a reassembled IP packet.

    Attributes:
        data: Its captured bytes.
        length: Its length on the wire.
    """

    data: bytes
    length: int


@dataclass(slots=True)
class _PartialDatagram:
    since_ns: int
    packets: list[int] = field(default_factory=list)
    data: Bytes = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    state: Bytes = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))
    covered_bytes: int = 0
    length: int | None = None

    def grow(self, end: int) -> None:
        """Make room, at least twice as much as before, so that copying costs linear time."""
        if end > len(self.data):
            room = min(max(end, 2 * len(self.data)), MAX_DATAGRAM_BYTES) - len(self.data)
            more = np.zeros(room, dtype=np.uint8)
            self.data = np.concatenate([self.data, more])
            self.state = np.concatenate([self.state, more])


class FragmentReassembler:
    """
    Incomplete datagrams, with their fragments so far.

    Where fragments overlap, the bytes that came first are kept. Memory is at most `MAX_INCOMPLETE`
    datagrams of 64 KiB; a fragment costs time proportional to its own length.

    Attributes:
        abandoned: Number of datagrams that were never completed, so far.
        evicted: Number of these dropped for new ones.
    """

    def __init__(self) -> None:
        self._open: OrderedDict[Hashable, _PartialDatagram] = OrderedDict()
        self.abandoned = 0
        self.evicted = 0

    @property
    def incomplete(self) -> int:
        """Number of incomplete datagrams."""
        return len(self._open)

    @property
    def packets(self) -> list[int]:
        """The packets with fragments of incomplete datagrams, in order."""
        return sorted(packet for datagram in self._open.values() for packet in datagram.packets)

    def add(
        self,
        key: Hashable,
        time_ns: int,
        offset: int,
        length: int,
        captured: memoryview,
        more: bool,
        packet: int = 0,
    ) -> Datagram | None:
        """
        Add one fragment.

        Args:
            key: The common properties of all fragments of a datagram.
            time_ns: Capture time.
            offset: Offset in the datagram, bytes.
            length: Length on the wire, bytes.
            captured: The bytes that were captured.
            more: Whether more fragments follow it in the datagram.
            packet: The number of its packet.

        Returns:
            The datagram, if this fragment completes it.
        """
        self._expire(time_ns)
        end = offset + length
        if end > MAX_DATAGRAM_BYTES:
            return None
        datagram = self._open.get(key)
        if datagram is None:
            datagram = self._open_datagram(key, time_ns)
        datagram.packets.append(packet)
        if not more and datagram.length is None:
            datagram.length = end
        datagram.grow(end)
        self._fill(datagram, offset, length, captured)
        return self._complete(key, datagram)

    def _open_datagram(self, key: Hashable, time_ns: int) -> _PartialDatagram:
        if len(self._open) >= MAX_INCOMPLETE:
            self._open.popitem(last=False)
            self.abandoned += 1
            self.evicted += 1
        datagram = self._open[key] = _PartialDatagram(time_ns)
        return datagram

    def _expire(self, time_ns: int) -> None:
        while self._open:
            key, oldest = next(iter(self._open.items()))
            if time_ns - oldest.since_ns <= MAX_AGE_NS:
                return
            del self._open[key]
            self.abandoned += 1

    def _fill(
        self, datagram: _PartialDatagram, offset: int, length: int, captured: memoryview
    ) -> None:
        state = datagram.state[offset : offset + length]
        missing = state == _MISSING
        data = datagram.data[offset : offset + len(captured)]
        uncovered = missing[: len(captured)]
        data[uncovered] = np.frombuffer(captured, dtype=np.uint8)[uncovered]
        datagram.covered_bytes += int(np.count_nonzero(missing))
        state[: len(captured)][uncovered] = _PRESENT
        state[len(captured) :][missing[len(captured) :]] = _CUT

    def _complete(self, key: Hashable, datagram: _PartialDatagram) -> Datagram | None:
        length = datagram.length
        if length is None or datagram.covered_bytes < length:
            return None
        state = datagram.state[:length]
        if not state.all():
            return None
        del self._open[key]
        cut = np.flatnonzero(state == _CUT)
        present = int(cut[0]) if len(cut) else length
        return Datagram(datagram.data[:present].tobytes(), length)
