"""The exchanges of a window that a plan takes up, stored together without being decoded."""

from __future__ import annotations

from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.exchanges.stored_exchanges import NONE, ExchangeSpill
from dissector.engine.facts.topic_table import TopicNames
from dissector.engine.reading.reader import Reading
from dissector.engine.tables.exchange_table import Exchanges

_CLIENT_ID_AT = 10
"""Position of the client id in a request, behind its length."""


class TakenRows:
    """
    Rows of a window, read one by one.

    A list gives its values in a fraction of the time of an array.

    Attributes:
        table: The exchanges of the window.
    """

    def __init__(self, table: Exchanges, spill: ExchangeSpill, reading: Reading) -> None:
        self.table = table
        self._spill = spill
        self._reading = reading
        self._first = len(spill)
        self._taken: list[tuple[int, str | None, int]] = []
        self._ends: dict[tuple[int, int], tuple[str, str]] = {}
        sides = table.request, table.response
        frames = [of for each in sides for of in (each.start, each.captured_bytes)]
        self._frames = list(zip(*(each.tolist() for each in frames), strict=True))
        ends = table.connection.tolist(), table.client.tolist()
        self._connections: list[tuple[int, int]] = list(zip(*ends, strict=True))

    @property
    def next_number(self) -> int:
        """The number of the next exchange that is added."""
        return self._first + len(self._taken)

    def add(self, row: int, client_id: str | None, shape: int = NONE) -> int:
        """Take up an exchange with the number of its shape; return its own number."""
        self._taken.append((row, client_id, shape))
        return self._first + len(self._taken) - 1

    @property
    def are_logged(self) -> bool:
        """Whether rows may be of a request log."""
        return bool(self._reading.logs)

    def exchange(self, row: int, names: TopicNames) -> Exchange:
        """Return a row as an object, with the known names of topic ids."""
        return self._reading.exchange(self.table, row, names)

    def frames(self, row: int) -> tuple[bytes, bytes]:
        """Return request and response of an answered row."""
        start, size, answer_start, answer_size = self._frames[row]
        bytes_at = self.table.bytes_at
        return bytes_at(start, size), bytes_at(answer_start, answer_size)

    def client_id(self, row: int) -> bytes | None:
        """Return the encoded client id of a row with a complete header; None for null."""
        at = self._frames[row][0] + _CLIENT_ID_AT
        size = int.from_bytes(self.table.bytes_at(at - 2, 2), "big", signed=True)
        return None if size < 0 else self.table.bytes_at(at, size)

    def connection(self, row: int) -> int:
        """Return the connection of a row."""
        return self._connections[row][0]

    def broker(self, row: int) -> str:
        """Return the address of the broker of a row."""
        return self._ends_of(self._connections[row])[1]

    def store(self) -> None:
        """Store what was taken up; once, at the end of the window."""
        rows = [row for row, _, _ in self._taken]
        for connection, client in dict.fromkeys(map(self._connections.__getitem__, rows)):
            self._spill.endpoints[connection] = self._ends_of((connection, client))
        rest = [each for _, each, _ in self._taken], [each for _, _, each in self._taken]
        self._spill.add_rows(self.table, rows, *rest)

    def _ends_of(self, connection: tuple[int, int]) -> tuple[str, str]:
        """Return the addresses of client and broker; `connection`: its number, and the client."""
        ends = self._ends.get(connection)
        if ends is None:
            ends = self._ends[connection] = self._reading.client_and_broker(*connection)
        return ends
