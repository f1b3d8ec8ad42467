"""Heartbeats that repeat an earlier one: they say nothing new of their group."""

from __future__ import annotations

from dissector.engine.tables.exchange_table import Exchanges
from dissector.summary.group_messages import HEARTBEATS

_MAX_REMEMBERED, _MAX_REMEMBERED_BYTES = 10_000, 4_096
"""Maximum number and size of remembered heartbeats."""


class RepeatedHeartbeats:
    """Remembers heartbeats."""

    def __init__(self) -> None:
        self._known: set[tuple[bytes, bytes]] = set()

    def is_repeated(self, table: Exchanges, row: int) -> bool:
        """Return whether an equal heartbeat was read, with an equal response; remember it."""
        if int(table.api_key[row]) not in HEARTBEATS:
            return False
        request, response = table.frame(table.request, row), table.frame(table.response, row)
        key = request[:4] + request[8:] if request else b"", response[4:] if response else b""
        if key in self._known:
            return True
        if sum(map(len, key)) <= _MAX_REMEMBERED_BYTES:
            if len(self._known) >= _MAX_REMEMBERED:
                self._known.clear()
            self._known.add(key)
        return False
