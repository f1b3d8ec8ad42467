"""The file of each packet of slices, in a part: only of the packets whose segments it has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dissector.capture.columns import Int64s, unique
from dissector.engine.tables.column_types import Coded
from dissector.engine.tables.exchange_table import Ints


class SliceFiles:
    """
    Maps packets to files.

    It holds the packets at which the file changes, with ten bytes for each.
    """

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._firsts: list[int] = []
        self._ends: list[int] = []
        self._runs: list[tuple[Int64s, NDArray[np.uint16]]] = []

    def add(self, packets: Int64s, names: Sequence[str], indexes: NDArray[np.uint16]) -> None:
        """Record the file of packets, behind all so far, as an index into names; or nothing."""
        if not len(indexes):
            return
        codes = np.array([self._codes.setdefault(name, len(self._codes)) for name in names])
        of_packet = codes[indexes].astype(np.uint16)
        changes = np.flatnonzero(np.diff(of_packet.astype(np.int64), prepend=-1))
        self._runs.append((packets[changes], of_packet[changes]))
        self._ends.append(int(packets[-1]))
        self._firsts.append(int(packets[0]))

    def put_into(self, files: Coded, packets: Ints) -> Coded:
        """Return the files of packets, where those of packets of slices are unknown so far."""
        if not self._firsts:
            return files
        codes = files.codes.copy()
        shards = np.searchsorted(self._firsts, packets, side="right") - 1
        for shard in unique(shards).tolist():
            if shard < 0:
                continue
            is_within = (shards == shard) & (packets <= self._ends[shard])
            changes, of_file = self._runs[shard]
            at = np.searchsorted(changes, packets[is_within], side="right") - 1
            codes[is_within] = len(files.values) + of_file[at].astype(np.int64)
        return Coded(codes, [*files.values, *self._codes])
