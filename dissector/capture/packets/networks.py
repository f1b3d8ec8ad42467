"""The networks of packets, by the names of their VLANs and VNIs."""

from __future__ import annotations

import numpy as np

from dissector.capture.hashing import SECRET, hash_key
from dissector.capture.packets.links import VLAN_BITS
from dissector.kernel import device_function
from dissector.kernel.arrays import I64
from dissector.kernel.named_rows import NamedRow, RowArray, Rows, dtype_of, rows_of

_FIRST_SLOTS = 16


class TaggedNetwork(NamedRow):
    """
    The network of VLAN tags.

    Attributes:
        tags: The tags; 0 in a free slot.
        number: The number of the network.
    """

    tags: int
    number: int


class Networks:
    """
    Networks by name, numbered as they appear.

    Attributes:
        names: By number; the first is empty, for packets in none.
        by_tags: A hash table of `TaggedNetwork`, for `read_headers`.
    """

    def __init__(self) -> None:
        self.names: list[str] = [""]
        self._numbers: dict[str, int] = {"": 0}
        self.by_tags: RowArray = np.zeros(_FIRST_SLOTS, dtype_of(TaggedNetwork))
        self._count = 0

    def number_of(self, name: str) -> int:
        """Return the number of a network; add it if it is new."""
        number = self._numbers.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number

    def __getstate__(self) -> tuple[list[str], RowArray]:
        return self.names, self._entries()

    def __setstate__(self, state: tuple[list[str], RowArray]) -> None:
        self.names, entries = state
        self._numbers = {name: number for number, name in enumerate(self.names)}
        self._count = len(entries)
        self._rebuild(entries, _FIRST_SLOTS)

    def add_tags(self, tags: int) -> None:
        """Add new VLAN tags to the hash table, which is at most half full."""
        self._count += 1
        if 2 * self._count > len(self.by_tags):
            self._rebuild(self._entries(), 2 * len(self.by_tags))
        self._put(tags, self.number_of(vlan_name(tags)))

    def _put(self, tags: int, number: int) -> None:
        rows = rows_of(self.by_tags, TaggedNetwork)
        new = rows[find_slot(rows, SECRET.data, tags)]
        new.tags, new.number = tags, number

    def _entries(self) -> RowArray:
        entries: RowArray = self.by_tags[self.by_tags["tags"] != 0]
        return entries

    def _rebuild(self, entries: RowArray, min_slots: int) -> None:
        """Build a hash table of at least `min_slots` slots from entries."""
        slots = max(min_slots, 1 << (2 * len(entries)).bit_length())
        self.by_tags = np.zeros(slots, dtype_of(TaggedNetwork))
        for tags, number in entries.tolist():
            self._put(tags, number)


@device_function
def find_slot(table: Rows[TaggedNetwork], secret: I64, tags: int) -> int:
    """Return the slot of VLAN tags in the table of networks, or the free slot for them."""
    last = len(table) - 1
    at = hash_key(secret, tags) & last
    while table[at].tags != tags and table[at].tags != 0:
        at = (at + 1) & last
    return at


def vlan_name(tags: int) -> str:
    """Return the name of the network of VLAN tags: `vlan 5.7`."""
    ids: list[str] = []
    while tags:
        ids.append(str(tags & 0xFFF))
        tags >>= VLAN_BITS
    return f"vlan {'.'.join(reversed(ids))}" if ids else ""
