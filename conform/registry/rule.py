"""
Rules of the Kafka protocol, and their registry.

A rule is a function that examines an observation (`conform.evidence.observation`) and reports to
a reporter (`conform.evidence.reporter`). The decorator `rule` registers it with its documentation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from conform.registry.rank import Rank, Severity, rank_of

ObservationKind: TypeAlias = Literal["exchange", "batch", "close", "live"]
"""The kind of observation that a rule examines."""

RuleFunction: TypeAlias = Callable[..., Any]

FastCheck: TypeAlias = Callable[..., int | None]


class Side(StrEnum):
    """The side that broke a rule."""

    CLIENT = "client"
    BROKER = "broker"


@dataclass(frozen=True, slots=True)
class Rule:
    """
    One rule.

    Attributes:
        id: A letter for its family and a number: `F03`.
        title: The rule in one line.
        severity: The default severity of its findings.
        source: Where Kafka defines it: a KIP, a source file, or the behaviour of its brokers.
        asks: The requirement, for the side that broke it.
        example: A violation, in one line.
        on: `exchange`: each exchange as it ends; `batch`: each record batch or message set that
            was produced or fetched; `close`: each connection at its end; `live`: a running broker.
        apis: Names of the APIs whose exchanges or batches it examines; empty: all.
        call: The function.
        fast_check: A fast check: returns the number of cases that keep the rule, or None where
            `call` must run. Rules with the same fast check share its result. None: no fast check.
    """

    id: str
    title: str
    severity: Severity
    source: str
    asks: str
    example: str
    on: ObservationKind
    apis: tuple[str, ...]
    call: RuleFunction
    fast_check: FastCheck | None = None

    @property
    def rank(self) -> Rank:
        """The consequence of a violation for clients."""
        return rank_of(self.id, self.severity)

    @property
    def order(self) -> tuple[str, int]:
        """Sort key of rules: the family, then the number."""
        return self.id[:1], int(self.id[1:])


REGISTRY: dict[str, Rule] = {}
"""Every rule by its id; filled by `conform.rules`."""


def rule(
    id: str,
    title: str,
    severity: Severity,
    *,
    source: str,
    asks: str,
    example: str,
    on: ObservationKind = "exchange",
    apis: tuple[str, ...] = (),
    fast_check: FastCheck | None = None,
) -> Callable[[RuleFunction], RuleFunction]:
    """Register a function as a rule; the arguments are the attributes of `Rule`."""

    def register(call: RuleFunction) -> RuleFunction:
        assert id not in REGISTRY, f"rule {id} is registered twice"
        REGISTRY[id] = Rule(id, title, severity, source, asks, example, on, apis, call, fast_check)
        return call

    return register
