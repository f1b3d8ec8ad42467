"""Bodies of exchanges written in bulk and one by one, and exchanges for tests of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dissector.engine.exchanges.exchange import Exchange
from dissector.engine.facts.topic_table import TopicNames
from dissector.engine.tables.column_types import Coded
from dissector.engine.tables.exchange_table import ANSWERED, Exchanges
from dissector.view.json import bulk_bodies
from dissector.view.json.body import body_text
from tests.default_frames import request, response
from tests.reference.correlation.exchange_rows import (
    ExchangeRow,
    to_exchange_table,
)
from tests.reference.correlation.framer import Frame

PRODUCE, FETCH = 0, 1

Texts = list[tuple[str | None, str | None]]


def exchange(
    request_frame: bytes | None, answer: bytes | None = None, missing: int = 0
) -> ExchangeRow:
    """Return an exchange of frames without sizes."""

    def frame(data: bytes | None) -> Frame | None:
        return None if data is None else Frame(0, data, len(data) + missing, 1, 1, 0)

    return ExchangeRow(0, ANSWERED, 0, frame(request_frame), frame(answer))


def split(table: Exchanges) -> Exchanges:
    """Split the messages between `data` and `carry_over`."""
    starts = np.sort(np.concatenate((table.request.start, table.response.start)))
    cut = max(int(starts[len(starts) // 2]), 0) if len(starts) else 0
    return replace(table, data=table.carry_over[:cut], carry_over=table.carry_over[cut:])


def one_by_one(table: Exchanges, show_secrets: bool = False) -> Texts:
    """Return the texts written by Python."""
    out: Texts = []
    for row in range(len(table)):
        each = Exchange(table, row, capture="", client="", broker="", names=TopicNames())
        texts = [
            body_text(message, each.request, show_secrets=show_secrets)
            for message in (each.request, each.response)
        ]
        out.append((texts[0], texts[1]))
    return out


def in_bulk(table: Exchanges, show_secrets: bool = False) -> Texts:
    """Return the texts written in bulk."""
    numbers = {"number": Coded(np.arange(len(table)), range(len(table)))}
    out: Texts = []
    for part in bulk_bodies.with_bodies(table, numbers, show_secrets):
        sides: list[list[str | None]] = []
        for name in ("request", "response"):
            content = [part[name].value(row) for row in range(len(part[name]))]
            sides.append([None if each is None else each.decode() for each in content])
        begin = len(out)
        out += zip(*sides, strict=True)
        assert [part["number"].value(i) for i in range(len(out) - begin)] == [
            *range(begin, len(out))
        ]
    return out


def check(rows: Sequence[ExchangeRow], show_secrets: bool = False) -> Texts:
    """Check that both agree; return the texts."""
    table = split(to_exchange_table(rows))
    texts = in_bulk(table, show_secrets)
    assert texts == one_by_one(table, show_secrets)
    return texts


def produce(*contents: bytes | None, topic: str = "orders", version: int = 9) -> ExchangeRow:
    """Return a Produce exchange, with a partition for each `records` field."""
    partitions = [{"index": n, "records": each} for n, each in enumerate(contents)]
    topics = [{"name": topic, "partition_data": partitions}]
    return exchange(request(PRODUCE, version, 1, acks=1, topic_data=topics)[4:])


def fetched(*contents: bytes | None, version: int = 11) -> ExchangeRow:
    """Return a Fetch exchange, with a partition for each `records` field."""
    partitions = [
        {
            "partition_index": n,
            "error_code": 0,
            "high_watermark": 0,
            "last_stable_offset": 0,
            "aborted_transactions": None,
            "records": each,
        }
        for n, each in enumerate(contents)
    ]
    topics = [{"topic": "orders", "partitions": partitions}]
    return exchange(
        request(FETCH, version, 1)[4:], response(FETCH, version, 1, responses=topics)[4:]
    )
