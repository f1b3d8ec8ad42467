"""The networks of packets, by the names of their VLANs and VNIs."""

from __future__ import annotations

import numpy as np

from dissector.capture.columns import Int64s
from dissector.capture.hashing import SECRET, hash_key
from dissector.capture.packets.links import VLAN_BITS
from dissector.kernel import device_function
from dissector.kernel.arrays import I64, I64Table

_FIRST_SLOTS = 16


class Networks:
    """
    Networks by name, numbered as they appear.

    Attributes:
        names: By number; the first is empty, for packets in none.
        by_tags: A hash table of VLAN tags and network numbers, for `read_headers`.
    """

    def __init__(self) -> None:
        self.names: list[str] = [""]
        self._numbers: dict[str, int] = {"": 0}
        self.by_tags: Int64s = np.zeros((_FIRST_SLOTS, 2), np.int64)
        self._count = 0

    def number_of(self, name: str) -> int:
        """Return the number of a network; add it if it is new."""
        number = self._numbers.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number

    def __getstate__(self) -> tuple[list[str], Int64s]:
        return self.names, self._entries()

    def __setstate__(self, state: tuple[list[str], Int64s]) -> None:
        self.names, entries = state
        self._numbers = {name: number for number, name in enumerate(self.names)}
        self._count = len(entries)
        self._rebuild(entries, _FIRST_SLOTS)

    def add_tags(self, tags: int) -> None:
        """Add new VLAN tags to the hash table, which is at most half full."""
        self._count += 1
        if 2 * self._count > len(self.by_tags):
            self._rebuild(self._entries(), 2 * len(self.by_tags))
        self.by_tags[find_slot(self.by_tags.data, SECRET.data, tags)] = (
            tags,
            self.number_of(vlan_name(tags)),
        )

    def _entries(self) -> Int64s:
        entries: Int64s = self.by_tags[self.by_tags[:, 0] != 0]
        return entries

    def _rebuild(self, entries: Int64s, min_slots: int) -> None:
        """Build a hash table of at least `min_slots` slots from entries."""
        self.by_tags = np.zeros((max(min_slots, 1 << (2 * len(entries)).bit_length()), 2), np.int64)
        for tags, number in entries.tolist():
            self.by_tags[find_slot(self.by_tags.data, SECRET.data, tags)] = tags, number


@device_function
def find_slot(table: I64Table, secret: I64, tags: int) -> int:
    """Return the slot of VLAN tags in the table of networks, or the free slot for them."""
    last = len(table) - 1
    at = hash_key(secret, tags) & last
    while table[at, 0] != tags and table[at, 0] != 0:
        at = (at + 1) & last
    return at


def vlan_name(tags: int) -> str:
    """Return the name of the network of VLAN tags: `vlan 5.7`."""
    ids: list[str] = []
    while tags:
        ids.append(str(tags & 0xFFF))
        tags >>= VLAN_BITS
    return f"vlan {'.'.join(reversed(ids))}" if ids else ""
