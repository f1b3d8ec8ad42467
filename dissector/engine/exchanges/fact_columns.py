"""Summary fields of a window's exchanges, in columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from dissector.engine.facts.topic_table import Topics
from dissector.engine.tables.exchange_table import Ints
from dissector.errors import Problem


@dataclass(slots=True, eq=False, repr=False)
class ExchangeSummaries:
    """
    The summary fields of a window's exchanges: a row each, as indices into lists.

    Attributes:
        client_id: Index into `client_ids`; 0 means None.
        errors: Index into `error_lists`: the errors of the response, each once; 0 is the empty
            list.
        topics: Index into `topic_lists`: the topics of request and response, each once; 0 means
            None.
        problems: Index into `problem_lists`; 0 means None.
        client_ids: Distinct client ids.
        error_lists: Names of errors, in wire order.
        topic_lists: Names of topics, and ids without a name, in wire order.
        problem_lists: Problems of request and response, including their records'.
    """

    client_id: Ints
    errors: Ints
    topics: Ints
    problems: Ints
    client_ids: list[str | None]
    error_lists: list[tuple[str, ...]]
    topic_lists: list[Topics]
    problem_lists: list[tuple[Problem, ...]]

    @classmethod
    def unread(cls, count: int) -> ExchangeSummaries:
        """Return the summaries of exchanges whose fields nobody asks for."""
        none = np.zeros(count, np.int64)
        return cls(none, none, none, none, [None], [()], [()], [()])


SUMMARY_COLUMNS = frozenset(("client_id", "errors", "topics", "problems"))
"""The columns of `pairs` that are read from the bodies."""

RECORD_COLUMNS = frozenset(("problems",))
"""Those of them for which records are located, decompressed and checked."""

Asked: TypeAlias = frozenset[str] | None
"""The only columns of `pairs` that will be read; None: all."""


class Stages(NamedTuple):
    """
    What a pass reads of the bodies of exchanges.

    Attributes:
        gleaning: The summaries of exchanges.
        checking: Problems of their records, which summaries else lack.
    """

    gleaning: bool
    checking: bool

    @classmethod
    def of(cls, asked: Asked) -> Stages:
        """Return the stages that make the asked columns what they are when all are asked."""
        if asked is None:
            return cls(gleaning=True, checking=True)
        gleaning, checking = (
            not asked.isdisjoint(columns) for columns in (SUMMARY_COLUMNS, RECORD_COLUMNS)
        )
        return cls(gleaning, checking)
