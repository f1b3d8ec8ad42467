"""Exchanges in columns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dissector.engine.tables.exchange_table import ANSWERED, NO_RESPONSE, NONE, ORPHAN
from tests.reference.correlation.exchange_rows import (
    ExchangeRow,
    to_exchange_table,
)
from tests.reference.correlation.framer import Frame


def test_columns_equal_rows() -> None:
    request = Frame(0, b"\x00\x0c\x00\x04request", 11, 3, 30, 100)
    response = Frame(1, b"cut", 9, 4, 40, 200)
    table = to_exchange_table(
        [
            ExchangeRow(7, ANSWERED, 0, request, response),
            ExchangeRow(8, ORPHAN, 1, None, response, answers_acks_0=True),
            ExchangeRow(9, NO_RESPONSE, 0, Frame(0, b"", 0, 5, 50, 0), None, token=True),
        ]
    )
    assert len(table) == 3
    assert table.connection.tolist() == [7, 8, 9]
    assert table.client.tolist() == [0, 1, 0]
    assert table.token.tolist() == [False, False, True]
    assert table.answers_acks_0.tolist() == [False, True, False]
    assert table.request.packet.tolist() == [3, NONE, 5]
    assert table.response.size.tolist() == [9, 9, NONE]
    assert table.response.captured_bytes.tolist() == [3, 3, NONE]
    assert table.response.offset.tolist() == [200, 200, NONE]
    assert [table.frame(table.request, row) for row in range(3)] == [request.data, None, b""]
    assert [table.frame(table.response, row) for row in range(3)] == [b"cut", b"cut", None]
    assert [table.api_and_version(row) for row in range(3)] == [(12, 4), None, None]


def test_no_rows() -> None:
    table = to_exchange_table([])
    assert len(table) == 0
    assert table.request.packet.dtype == "int64"


def test_a_truncated_request_has_no_api_key() -> None:
    assert (
        to_exchange_table(
            [ExchangeRow(0, 1, 0, Frame(0, b"\0\0\0", 20, 0, 0, 0), None)]
        ).api_and_version(0)
        is None
    )


def test_some_rows_and_numbers_of_two_bytes() -> None:
    frames = [Frame(0, data, len(data), 1, 1, 0) for data in (b"\x80\x01ab", b"\x00\x23cd")]
    table = to_exchange_table(
        [ExchangeRow(n, ANSWERED, 0, frame, None) for n, frame in enumerate(frames)]
    )
    for cut in (0, 4, 8):
        halves = replace(table, data=table.carry_over[:cut], carry_over=table.carry_over[cut:])
        assert halves.int16_at(table.request.start).tolist() == [-0x7FFF, 0x23]
    second = table.rows(np.array([1]))
    assert second.connection.tolist() == [1]
    assert second.frame(second.request, 0) == b"\x00\x23cd"
    assert second.frame(second.response, 0) is None
