"""
What a reading keeps of packets for filters and details, on request only: lengths and comments.

The length of a packet is kept until no message can end in it any more; comments are few, and kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from dissector.capture.columns import Packets
from dissector.capture.packet_comments import packet_comments
from dissector.engine.tables.exchange_table import NONE, Ints

MAX_KEPT_CHARACTERS = 16 << 20
"""Comments of a capture beyond this many characters push out the oldest ones."""


class PacketLengths:
    """The lengths of recent packets."""

    def __init__(self) -> None:
        self._windows: deque[tuple[int, Ints]] = deque()

    def add(self, first: int, lengths: Ints) -> None:
        """Add the next packets, from number `first` on."""
        self._windows.append((first, lengths))

    def drop_before(self, packet: int) -> None:
        """Drop packets with lower numbers, in whole windows."""
        while self._windows and sum(_extent(self._windows[0])) <= packet:
            self._windows.popleft()

    def of(self, packets: Ints) -> Ints:
        """Return the lengths of packets; NONE if unknown."""
        lengths = np.full(len(packets), NONE)
        for first, window in list(self._windows):
            inside = (packets >= first) & (packets < first + len(window))
            lengths[inside] = window[packets[inside] - first]
        return lengths


def _extent(window: tuple[int, Ints]) -> tuple[int, int]:
    return window[0], len(window[1])


class PacketComments:
    """
    The comments of packets by number.

    Those that the user gave replace those in the capture; an empty list removes them.
    """

    def __init__(self, given: Mapping[int, list[str]]) -> None:
        self._given = given
        self._found: dict[int, list[str]] = {}
        self._characters = 0

    def add(self, packets: Packets) -> None:
        """Add the comments of a window."""
        for packet, texts in packet_comments(packets):
            self._found[packet] = texts
            self._characters += sum(map(len, texts))
            while self._characters > MAX_KEPT_CHARACTERS:
                dropped = self._found.pop(next(iter(self._found)))
                self._characters -= sum(map(len, dropped))

    def of(self, packet: int) -> list[str]:
        """Return the comments of a packet."""
        found = self._given.get(packet)
        return self._found.get(packet, []) if found is None else found

    def distinct(self, packets: Ints) -> tuple[Ints, list[list[str]]]:
        """Return the index of each packet's comments in a list, and this."""
        commented = np.flatnonzero(np.isin(packets, [*self._found, *self._given]))
        indexes = np.zeros(len(packets), np.int64)
        indexes[commented] = np.arange(len(commented)) + 1
        return indexes, [[], *map(self.of, packets[commented].tolist())]


class PacketFacts:
    """
    What is kept of packets.

    Attributes:
        lengths: Their lengths; None if these are not kept.
        comments: Their comments, likewise.
    """

    def __init__(
        self, wanted: Collection[str], comments: Mapping[int, list[str]] = MappingProxyType({})
    ) -> None:
        """Start; `wanted` may have `lengths` and `comments`; `comments`: given by the user."""
        self.lengths = PacketLengths() if "lengths" in wanted else None
        self.comments = PacketComments(comments) if "comments" in wanted else None

    def add(self, packets: Packets) -> None:
        """Add a window."""
        if self.lengths is not None:
            self.lengths.add(packets.first, packets.original)
        if self.comments is not None:
            self.comments.add(packets)

    def lengths_of(self, packets: Ints) -> Ints:
        """Return the lengths of packets; NONE if unknown."""
        return np.full(len(packets), NONE) if self.lengths is None else self.lengths.of(packets)

    def comments_of(self, packet: int) -> Sequence[str]:
        """Return the comments of a packet."""
        return [] if self.comments is None else self.comments.of(packet)


NO_FACTS = PacketFacts(())
"""Nothing is kept."""
