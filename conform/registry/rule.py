"""
Rules of the Kafka protocol, and their registry.

A rule is a function that examines an observation (`conform.evidence.observation`) and passes its
results to a reporter (`conform.evidence.reporter`). The decorator `rule` registers the function
with its documentation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from conform.registry.rank import Rank, Severity, rank_of
from conform.registry.rule_screen import NO_FAULT, HeaderFault, PlainCount, Screen

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
        title: The violation in one line, as a headline.
        severity: The default severity of its findings.
        source: Where Kafka defines the rule: a KIP, a source file, the behaviour of its brokers.
        asks: The requirement, in full sentences.
        example: A violation, in one line.
        on: The observations that it examines. `exchange`: each exchange at its end; `batch`: each
            produced or fetched record batch or message set; `close`: each connection at its end;
            `live`: a running broker.
        apis: Names of the examined APIs; empty for all.
        call: The function.
        fast_check: A fast check; it returns the number of judged cases if none breaks the rule, or
            None if `call` must run. Rules with the same fast check share its result.
        screen: Proves in the columns of a window which exchanges keep the rule (`rule_screen`).
        plain_batch: Of a rule on batches, the number of cases that it judges in a plain one.
        header_fault: The fault of plain batches for which `call` runs, with no more than their
            header, as one of them has it.
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
    screen: Screen | None = None
    plain_batch: PlainCount | None = None
    header_fault: HeaderFault = NO_FAULT

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
    screen: Screen | None = None,
    plain_batch: PlainCount | None = None,
    header_fault: HeaderFault = NO_FAULT,
) -> Callable[[RuleFunction], RuleFunction]:
    """Register a function as a rule; the arguments are the attributes of `Rule`."""

    def register(call: RuleFunction) -> RuleFunction:
        assert id not in REGISTRY, f"rule {id} is registered twice"
        checks = fast_check, screen, plain_batch, header_fault
        REGISTRY[id] = Rule(id, title, severity, source, asks, example, on, apis, call, *checks)
        return call

    return register
