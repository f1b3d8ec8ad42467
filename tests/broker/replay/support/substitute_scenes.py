"""What is recorded in the place of a scenario that says what only brokers may."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from construct import Container

from tools.record.scenario import Stage
from tools.record.scenarios.sweep import new
from tools.record.sweep.client import SweepClient, patiently
from tools.record.sweep.transaction_sweep import (
    ADD_PARTITIONS,
    DESCRIBE_TRANSACTIONS,
    END_TXN,
    WRITE_MARKERS,
    transactions,
)


class Patient(SweepClient):
    """
    Goes on when the markers of a transaction are written: else chance decides where they lie.

    What it asks for that is asked where nothing is captured.
    """

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage.cluster.bootstrap())
        self._aside = SweepClient(stage.cluster.nodes[0].address.at("INTERNAL"))

    def __exit__(self, *error: Any) -> None:
        """Close the connections."""
        try:
            self._aside.__exit__(*error)
        finally:
            super().__exit__(*error)

    def request_next(self, key: int, number: int, /, **fields: Any) -> Container | None:
        """Say what is to be said, and wait where a transaction ends."""
        answer = super().request_next(key, number, **fields)
        if key == END_TXN:
            patiently("markers", lambda: self._has_ended(fields["transactional_id"]))
        return answer

    def _has_ended(self, name: str) -> bool:
        description = self._aside.newest(DESCRIBE_TRANSACTIONS, transactional_ids=[name])
        assert description is not None, "no response to DescribeTransactions"
        return description.transaction_states[0].transaction_state.startswith("Complete")


def said_by_clients(stage: Stage) -> None:
    """Say of transactions what clients say, and nothing that only brokers do (KIP-890)."""
    _said_by_clients(stage, transactions)


def new_said_by_clients(stage: Stage) -> None:
    """Say what Kafka 4.4 added, and nothing that only brokers do."""
    _said_by_clients(stage, new)


def _said_by_clients(stage: Stage, play: Callable[[SweepClient], None]) -> None:
    with Patient(stage) as speaker:
        speaker.offered[ADD_PARTITIONS] = range(4)
        del speaker.offered[WRITE_MARKERS]
        play(speaker)
