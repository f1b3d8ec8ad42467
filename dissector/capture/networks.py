"""The networks that packets are in, by the names of their VLANs and VNIs."""

from __future__ import annotations

from typing import Any

import numpy as np

from dissector.capture.links import VLAN_BITS
from dissector.kernel import part


class Networks:
    """
    Networks by name, numbered as they are met.

    Attributes:
        names: By number; the first is empty, for packets in none.
        by_tags: A hash table of VLAN tags and network numbers, for `read_headers`.
    """

    def __init__(self) -> None:
        self.names: list[str] = [""]
        self._numbers: dict[str, int] = {"": 0}
        self.by_tags = np.zeros((16, 2), np.int64)
        self._tags = 0

    def number(self, name: str) -> int:
        """Return the number of a network, which may be new."""
        number = self._numbers.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number

    def learn(self, tags: int) -> None:
        """Enter VLAN tags, which are new, in the table; it is at most half full."""
        self._tags += 1
        if 2 * self._tags > len(self.by_tags):
            entries = self.by_tags[self.by_tags[:, 0] != 0]
            self.by_tags = np.zeros((2 * len(self.by_tags), 2), np.int64)
            for each, number in entries.tolist():
                self.by_tags[slot(self.by_tags.data, each)] = each, number
        self.by_tags[slot(self.by_tags.data, tags)] = tags, self.number(tags_text(tags))


@part
def slot(known: Any, tags: int) -> int:
    """Return where some tags stand in the table of networks, or the free place for them."""
    last = len(known) - 1
    at = (((tags ^ tags >> 24) & 0xFFFFFF) * 0x9E3779B1 >> 20) & last
    while known[at, 0] != tags and known[at, 0] != 0:
        at = (at + 1) & last
    return at


def tags_text(tags: int) -> str:
    """Return the name of the network that these tags make: `vlan 5.7`."""
    ids: list[str] = []
    while tags:
        ids.append(str(tags & 0xFFF))
        tags >>= VLAN_BITS
    return f"vlan {'.'.join(reversed(ids))}" if ids else ""
