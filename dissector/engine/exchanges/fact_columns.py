"""Facts of a window's exchanges, in columns."""

from __future__ import annotations

from dataclasses import dataclass

from dissector.engine.facts.topic_table import Topics
from dissector.engine.tables.exchange_table import Ints
from dissector.errors import Problem


@dataclass(slots=True)
class ExchangeSummaries:
    """
    What the bodies of a window's exchanges tell: a row each, as indices into lists.

    Attributes:
        client_id: Of the client ids; 0 is None.
        errors: Of the lists of errors in responses, each error once; 0 is the empty one.
        topics: Of the lists of topics in request and response, each once; likewise.
        problems: Of the lists of problems; likewise.
        client_ids: What clients call themselves.
        error_lists: Names of errors, in wire order.
        topic_lists: Names and nameless ids of topics, in wire order.
        problem_lists: Problems of request and response, those of records included.
    """

    client_id: Ints
    errors: Ints
    topics: Ints
    problems: Ints
    client_ids: list[str | None]
    error_lists: list[tuple[str, ...]]
    topic_lists: list[Topics]
    problem_lists: list[tuple[Problem, ...]]
