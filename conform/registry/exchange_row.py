"""What the columns of a window say of an exchange."""

from __future__ import annotations

from typing import NamedTuple


class ExchangeRow(NamedTuple):
    """
    The columns of an exchange that most rules read, as plain numbers.

    Attributes:
        api_key: The key of the API; None for orphan responses and raw SASL tokens.
        version: The version of the request, likewise.
        correlation_id: The number that request and response share; None if it is unknown.
        request_packet: Number of the packet that completed the request; None without a request.
        response_packet: The same for the response.
        request_ns: Completion time of the request; None without one.
        response_ns: The same for the response.
        request_offset: Offset of the request in its stream; -1 if it was not captured.
    """

    api_key: int | None
    version: int | None
    correlation_id: int | None
    request_packet: int | None
    response_packet: int | None
    request_ns: int | None
    response_ns: int | None
    request_offset: int
