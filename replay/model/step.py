"""Steps: captured exchanges in the plan of a replay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dissector.engine.exchanges.captured_exchange import CapturedExchange


@dataclass(slots=True)
class Step:
    """
    A captured request at its place in a plan.

    Attributes:
        number: From 0, in the order of processing by the brokers: see `order.service_order`.
        captured: The request and its response.
        after: Numbers of the steps that must have responses before this one is sent.
        left_out: Reason why it is not sent; empty if it is.
        is_before_rebalance: Whether its response reports no error, and the member's next one a
            rebalance of the group.
        is_before_assignment: Whether the member gets partitions only in a later response.
        missing_prerequisites: Omitted changes that its response depends on, by the names of
            `exclusion_policy.changes`.
        overlaps: Resources that changed during the request, as in `concurrent_changes.Overlaps`.
        is_sent_again: Whether it has a batch of an idempotent producer that an earlier step sent
            too: the target may have appended it then.
    """

    number: int
    captured: CapturedExchange
    after: tuple[int, ...] = ()
    left_out: str = ""
    is_before_rebalance: bool = False
    is_before_assignment: bool = False
    missing_prerequisites: frozenset[str] = frozenset()
    overlaps: Mapping[tuple[Any, ...], bool] = field(default_factory=dict)
    is_sent_again: bool = False
