"""
A rule of Kafka's protocol, and the registry that holds them all.

A rule is a function that looks at a turn (`conform.turn`) and says what it found (`conform.say`);
the decorator `rule` puts it into the registry with all that people want to know of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal, TypeAlias

from conform.rank import Rank, rank_of

On: TypeAlias = Literal["exchange", "batch", "close", "live"]
"""What a rule is called for."""

Call: TypeAlias = Callable[..., Any]

Glance: TypeAlias = Callable[..., int | None]


class Severity(StrEnum):
    """
    How bad it is to break a rule.

    What Kafka refuses, or what corrupts a peer, is an error; what Kafka tolerates is a warning;
    advice is a note.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Side(StrEnum):
    """Who broke a rule."""

    CLIENT = "client"
    BROKER = "broker"


@dataclass(frozen=True, slots=True)
class Rule:
    """
    One rule.

    Attributes:
        id: A letter for its family and a number: `F03`.
        title: The rule in one line.
        severity: Unless a finding says otherwise.
        source: Where Kafka says so: a KIP, a file of its source, or what its brokers do.
        asks: What the rule asks, for whoever broke it.
        example: A case that breaks it, in one line.
        on: `exchange`: each exchange as it ends; `batch`: each record batch or message set that
            was produced or fetched; `close`: each connection at its end; `live`: a running broker.
        apis: Names of the APIs whose exchanges or batches it looks at; empty: all.
        call: The function.
        glance: Tells of what `call` would be given how many cases of it keep the rule, as far as a
            glance shows; None: `call` must look. Rules with the same glance share it.
    """

    id: str
    title: str
    severity: Severity
    source: str
    asks: str
    example: str
    on: On
    apis: tuple[str, ...]
    call: Call
    glance: Glance | None = None

    @property
    def rank(self) -> Rank:
        """What it means for clients that it is broken."""
        return rank_of(self.id, self.severity)

    @property
    def order(self) -> tuple[str, int]:
        """What rules are sorted by: the family, then the number."""
        return self.id[:1], int(self.id[1:])


REGISTRY: dict[str, Rule] = {}
"""Every rule by its id; `conform.rules` fills it."""


def rule(
    id: str,
    title: str,
    severity: Severity,
    *,
    source: str,
    asks: str,
    example: str,
    on: On = "exchange",
    apis: tuple[str, ...] = (),
    glance: Glance | None = None,
) -> Callable[[Call], Call]:
    """Put a function into the registry as a rule; the arguments are `Rule`'s attributes."""

    def register(call: Call) -> Call:
        assert id not in REGISTRY, f"rule {id} is there twice"
        REGISTRY[id] = Rule(id, title, severity, source, asks, example, on, apis, call, glance)
        return call

    return register
