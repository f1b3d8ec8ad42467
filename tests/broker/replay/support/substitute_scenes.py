"""Substitutes for scenarios with requests reserved to brokers."""

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


class MarkerAwaitingClient(SweepClient):
    """
    Continues after the markers of a transaction are written, for deterministic offsets.

    Its own requests go through an uncaptured connection.
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
        """Send the next request, and wait for markers after the end of a transaction."""
        answer = super().request_next(key, number, **fields)
        if key == END_TXN:
            patiently("markers", lambda: self._has_ended(fields["transactional_id"]))
        return answer

    def _has_ended(self, name: str) -> bool:
        description = self._aside.newest(DESCRIBE_TRANSACTIONS, transactional_ids=[name])
        assert description is not None, "no response to DescribeTransactions"
        return description.transaction_states[0].transaction_state.startswith("Complete")


def client_transaction_versions(stage: Stage) -> None:
    """Send the transaction requests of clients, without those reserved to brokers (KIP-890)."""
    _send_client_versions(stage, transactions)


def new_client_transaction_versions(stage: Stage) -> None:
    """Send the requests added in Kafka 4.4, without those reserved to brokers."""
    _send_client_versions(stage, new)


def _send_client_versions(stage: Stage, play: Callable[[SweepClient], None]) -> None:
    with MarkerAwaitingClient(stage) as speaker:
        speaker.offered[ADD_PARTITIONS] = range(4)
        del speaker.offered[WRITE_MARKERS]
        play(speaker)
