"""The times of an exchange."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from dissector.engine.tables.exchange_table import NONE, Exchanges, Frames

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ExchangeTimes:
    """The times of a row of a table of exchanges."""

    _table: Exchanges
    _row: int

    @property
    def request_time_ns(self) -> int | None:
        """Completion time of the request, ns since the epoch."""
        return self._value(self._table.request, "time_ns")

    @property
    def response_time_ns(self) -> int | None:
        """Completion time of the response."""
        return self._value(self._table.response, "time_ns")

    @property
    def request_time(self) -> datetime | None:
        """Completion time of the request, in UTC, to the microsecond."""
        return _datetime(self.request_time_ns)

    @property
    def response_time(self) -> datetime | None:
        """Completion time of the response, in UTC, to the microsecond."""
        return _datetime(self.response_time_ns)

    @property
    def latency_ms(self) -> float | None:
        """Time from the complete request to the complete response, in milliseconds."""
        return _elapsed_ms(self.request_time_ns, self.response_time_ns)

    @property
    def network_ms(self) -> float | None:
        """
        The network's part of the latency, in milliseconds; None where the capture lacks it.

        The RTT between the capture and the broker, the time until lost bytes of the request were
        sent again, and the transfer of the response. At the broker's host only the last is left.
        """
        server_ns, begin_ns = self._server_ns, self.request_time_ns
        if server_ns is None or begin_ns is None:
            return None
        return _elapsed_ms(begin_ns + server_ns, self.response_time_ns)

    @property
    def server_ms(self) -> float | None:
        """The rest of the latency, in milliseconds: the broker, until it began to respond."""
        return None if self._server_ns is None else self._server_ns / 1e6

    @property
    def _server_ns(self) -> int | None:
        server_ns = int(self._table.server_ns[self._row])
        return None if server_ns == NONE or self.is_logged else server_ns

    @property
    def is_logged(self) -> bool:
        """Whether it is of a request log: its records and bytes were not captured."""
        return False

    def _value(self, frames: Frames, column: str) -> int | None:
        value = getattr(frames, column)[self._row]
        return None if value == NONE else int(value)


def _elapsed_ms(begin_ns: int | None, end_ns: int | None) -> float | None:
    return None if begin_ns is None or end_ns is None else (end_ns - begin_ns) / 1e6


def _datetime(time_ns: int | None) -> datetime | None:
    return None if time_ns is None else _EPOCH + timedelta(microseconds=time_ns // 1000)
