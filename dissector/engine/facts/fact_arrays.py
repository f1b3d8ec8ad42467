"""The arrays that the fact kernel reads and writes, in groups."""

from __future__ import annotations

from typing import NamedTuple

from dissector.kernel.arrays import I64, U8, I64Table

FALLBACK, OUT_OF_ROOM = -1, -2
"""Reasons why facts of an exchange were not read: codecs must read it; an array is full."""

(
    ROW_COUNT,
    CLIENT_ENTRY,
    ERROR_COUNT,
    TOPIC_COUNT,
    NAME_COUNT,
    FIELD_COUNT,
    ATTEMPT,
    EXCHANGE,
    SHORT_OF,
) = range(9)
"""
Indexes of `FactArrays.counters`. Of the current exchange: its rows on the tape; the entry + 1 of
its client id; its errors and topics. Of all: rows of `topic_names` and of `fields`; exchanges
begun, also in vain; the next exchange; which array was too short.
"""
COUNTER_COUNT = 9

SHORT_OF_ROWS, SHORT_OF_TEXTS, SHORT_OF_LISTS, SHORT_OF_NAMES, SHORT_OF_FIELDS = range(5)


class ExchangeArrays(NamedTuple):
    """
    The exchanges of a window: columns of `Exchanges`, of its requests and of its responses.

    Attributes:
        first_steps: The first instructions of each kind of message: request, response, refusal.
    """

    token: U8
    answers_acks_0: U8
    api_key: I64
    api_version: I64
    request_start: I64
    request_captured: I64
    request_size: I64
    response_start: I64
    response_captured: I64
    response_size: I64
    first_steps: I64Table


class FactArrays(NamedTuple):
    """
    The results of the kernel: see `WindowFacts`, and below.

    Attributes:
        text_pool: The pool of the table of texts.
        list_pool: The pool of the table of lists.
        topic_names: As in `WindowFacts`, and so are the next.
        fields: As in `WindowFacts`.
        state: As in `WindowFacts`.
        clients: As in `WindowFacts`.
        errors: As in `WindowFacts`.
        topics: As in `WindowFacts`.
        seen: The last exchange with each error code.
        current_errors: The errors of the current exchange.
        current_topics: Its topics.
        counters: See above.
    """

    text_pool: U8
    list_pool: I64
    topic_names: I64Table
    fields: I64Table
    state: U8
    clients: I64
    errors: I64
    topics: I64
    seen: I64
    current_errors: I64
    current_topics: I64
    counters: I64
