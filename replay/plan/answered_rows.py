"""The answered exchanges of a window as stored ones, without a message being decoded."""

from __future__ import annotations

from dissector.engine.exchanges.captured_exchange import CapturedExchange
from dissector.engine.tables.exchange_table import Exchanges


class AnsweredRows:
    """
    Rows of a window with request and response, read one by one.

    A list gives its values in a fraction of the time of an array.
    """

    def __init__(self, table: Exchanges) -> None:
        self._table = table
        sides = table.request, table.response
        frames = [of for each in sides for of in (each.start, each.captured_bytes)]
        self._frames = list(zip(*(each.tolist() for each in frames), strict=True))
        facts = (
            *(table.connection, table.client, table.api_key, table.api_version),
            *(table.correlation_id, table.request.time_ns, table.response.time_ns),
            table.request.packet,
        )
        self._facts = list(zip(*(each.tolist() for each in facts), strict=True))

    def frames(self, row: int) -> tuple[bytes, bytes]:
        """Return request and response of a row."""
        start, size, answer_start, answer_size = self._frames[row]
        bytes_at = self._table.bytes_at
        return bytes_at(start, size), bytes_at(answer_start, answer_size)

    def connection_and_client(self, row: int) -> tuple[int, int]:
        """Return the connection of a row, and the side of its client."""
        return self._facts[row][:2]

    def exchange(
        self, row: int, client_id: str | None, ends: tuple[str, str], frames: tuple[bytes, bytes]
    ) -> CapturedExchange:
        """
        Return the exchange of a row.

        Args:
            row: The row.
            client_id: The client id of the request.
            ends: Addresses of client and broker.
            frames: Request and response.
        """
        connection, _, key, version, correlation_id, begun_ns, done_ns, packet = self._facts[row]
        return CapturedExchange(
            connection,
            *ends,
            key,
            version,
            correlation_id,
            client_id,
            *frames,
            True,
            begun_ns,
            done_ns,
            packet + 1,
            self._table.known_secrets(row),
        )
