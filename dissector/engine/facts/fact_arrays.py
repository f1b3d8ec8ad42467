"""The arrays that the fact kernel reads and writes, in groups."""

from __future__ import annotations

from typing import NamedTuple

from dissector.kernel.arrays import I64, U8
from dissector.kernel.named_rows import NamedRow, Rows

FALLBACK, OUT_OF_ROOM = -1, -2
"""Reasons why facts of an exchange were not read: codecs must read it; an array is full."""


class ShortOf:
    """What an exchange lacked room for: the tape, a table or pool, new names, `records` fields."""

    ROWS, TEXTS, LISTS, NAMES, FIELDS = range(5)


class FactCounters(NamedRow):
    """
    How far the kernel came.

    Attributes:
        rows: Of the current exchange: its rows on the tape.
        client: The entry + 1 of its client id; 0 for none.
        errors: Its errors.
        topics: Its topics.
        names: Of all exchanges: rows of `topic_names`.
        fields: Rows of `fields`.
        attempt: Exchanges begun, also in vain.
        exchange: The next exchange.
        short_of: What there was no room for; of `ShortOf`.
    """

    rows: int
    client: int
    errors: int
    topics: int
    names: int
    fields: int
    attempt: int
    exchange: int
    short_of: int


class FirstSteps(NamedRow):
    """
    The first instructions of a kind of messages; negative without a program.

    Attributes:
        request: Of the request.
        response: Of the response.
        refusal: Of the response of a broker to an unknown version of ApiVersions.
    """

    request: int
    response: int
    refusal: int


class NameRow(NamedRow):
    """
    A new name of a topic id.

    Attributes:
        exchange: The exchange with both.
        topic_id: Entry of the id.
        name: Entry of the name.
    """

    exchange: int
    topic_id: int
    name: int


class FieldRow(NamedRow):
    """
    A `records` field.

    Attributes:
        exchange: Its exchange.
        start: Address of its content.
        length: Bytes of its content.
        may_be_cut: Whether its last batch may be cut off.
    """

    exchange: int
    start: int
    length: int
    may_be_cut: bool


class ExchangeArrays(NamedTuple):
    """
    The exchanges of a window: columns of `Exchanges`, of its requests and of its responses.

    Attributes:
        first_steps: Of each kind of messages, `key * VERSIONS + version`.
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
    first_steps: Rows[FirstSteps]


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
    topic_names: Rows[NameRow]
    fields: Rows[FieldRow]
    state: U8
    clients: I64
    errors: I64
    topics: I64
    seen: I64
    current_errors: I64
    current_topics: I64
    counters: FactCounters
