"""Exchanges as the correlator emits them, and their columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dissector.engine.tables.exchange_table import (
    BROKEN_REQUEST,
    BROKEN_RESPONSE,
    NONE,
    Exchanges,
    Frames,
)
from tests.reference.correlation.framer import Frame


class ExchangeRow(NamedTuple):
    """
    One exchange as the correlator emits it.

    Attributes:
        connection: Number of the connection.
        status: ANSWERED, UNANSWERED, NO_RESPONSE, ORPHAN or WAITING.
        client: The side that sends requests, 0 or 1.
        request: Its frame.
        response: Its frame.
        token: Whether these are raw SASL tokens, which have no Kafka header.
        answers_acks_0: Whether this is a response to a request that expects none (acks = 0).
        server_ns: How long the broker had the request; NONE where the capture does not show it.
    """

    connection: int
    status: int
    client: int
    request: Frame | None
    response: Frame | None
    token: bool = False
    answers_acks_0: bool = False
    server_ns: int = NONE


def to_exchange_table(rows: Sequence[ExchangeRow]) -> Exchanges:
    """Return exchanges as a table of columns."""
    carry_over = bytearray()
    request = _frames([row.request for row in rows], carry_over)
    response = _frames([row.response for row in rows], carry_over)
    headers = np.array([header(row) for row in rows], np.int64).reshape(-1, 3)
    api_key, api_version, correlation_id = np.ascontiguousarray(headers.T)
    return Exchanges(
        data=np.zeros(0, np.uint8),
        carry_over=np.frombuffer(bytes(carry_over), np.uint8),
        connection=np.array([row.connection for row in rows], np.int64),
        status=np.array([row.status for row in rows], np.int8),
        client=np.array([row.client for row in rows], np.int8),
        token=np.array([row.token for row in rows], np.bool_),
        answers_acks_0=np.array([row.answers_acks_0 for row in rows], np.bool_),
        broken_off=np.array([broken_off(row) for row in rows], np.int8),
        api_key=api_key,
        api_version=api_version,
        correlation_id=correlation_id,
        server_ns=np.array([row.server_ns for row in rows], np.int64),
        request=request,
        response=response,
    )


def broken_off(row: ExchangeRow) -> int:
    """Return flags for the messages interrupted by the connection's end."""
    request = BROKEN_REQUEST if row.request is not None and row.request.broken_off else 0
    response = BROKEN_RESPONSE if row.response is not None and row.response.broken_off else 0
    return request | response


def header(row: ExchangeRow) -> tuple[int, int, int]:
    """Return API key, version and correlation id of an exchange."""
    if row.token:
        return NONE, NONE, NONE
    if row.request is None:
        head = row.response.data[:4] if row.response else b""
        return NONE, NONE, _number(head) if len(head) == 4 else NONE
    head = row.request.data[:8]
    if len(head) < 8:
        return NONE, NONE, NONE
    return _number(head[:2]), _number(head[2:4]), _number(head[4:])


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


def _frames(frames: Sequence[Frame | None], data: bytearray) -> Frames:
    """Append the bytes of frames to a buffer and return their columns."""
    table = np.full((6, len(frames)), NONE, np.int64)
    for at, frame in enumerate(frames):
        if frame is None:
            continue
        captured = len(frame.data)
        table[:, at] = (
            len(data),
            captured,
            frame.size,
            frame.packet,
            frame.time_ns,
            frame.offset,
        )
        data += frame.data
    return Frames(*table)
