"""Known state of transactions at each exchange."""

from __future__ import annotations

from conform.evidence.observation import Observation
from conform.evidence.reporter import Reporter
from conform.evidence.transaction_history import (
    AddedPartitions,
    ProducedPartitions,
    Transaction,
    TransactionHistory,
    ending_session,
)
from conform.registry.rank import Severity
from conform.registry.rule import Rule
from tests.conform.rules.data.test_transactions import TransactionScene


def known(till: TransactionScene) -> list[tuple[Transaction | None, bool]]:
    """Return the known state at each EndTxn, and whether partitions or offsets were added."""
    found: list[tuple[Transaction | None, bool]] = []

    def look(observation: Observation, reporter: Reporter) -> None:
        added = observation.capture_state.state(AddedPartitions)
        added.record(observation)
        open_one = observation.connection.state(TransactionHistory).transaction_of(observation)
        assert (
            observation.connection.state(TransactionHistory).transaction_of(observation) is open_one
        )
        if observation.exchange.api == "EndTxn":
            has_any = (ending_session(observation), None) in added
            found.append((open_one, has_any))

    till.scene.judge([Rule("Z01", "", Severity.NOTE, "", "", "", "exchange", (), look)])
    return found


def test_a_transaction_is_known_from_its_beginning() -> None:
    assert known(TransactionScene().init().adds(0).ends().ends(committed=False)) == [
        (Transaction(is_begun=True), True),
        (Transaction(is_committed=True), True),
    ]


def test_a_transaction_without_its_beginning_is_unknown() -> None:
    assert known(TransactionScene().adds(0).ends()) == [(None, True)]


def test_a_refused_end_leaves_it_open() -> None:
    till = TransactionScene().init().adds_offsets().ends(error=51).ends()
    assert known(till) == [(Transaction(is_begun=True), True)] * 2


def test_a_transaction_with_a_lost_packet_is_unknown() -> None:
    till = TransactionScene().init().adds(0).ends()
    till.scene.lose(2)
    assert [open_one for open_one, _ in known(till)] == [None]


def test_produced_partitions_of_a_transaction() -> None:
    seen: list[dict[object, object]] = []

    def look(observation: Observation, reporter: Reporter) -> None:
        produced = observation.capture_state.state(ProducedPartitions)
        produced.record(observation)
        seen.append({who: set(places) for who, places in produced.items()})

    till = TransactionScene().init().writes(2).writes(1, version=12)
    till.scene.judge([Rule("Z01", "", Severity.NOTE, "", "", "", "exchange", ("Produce",), look)])
    (who,) = seen[-1]
    assert who.producer_id == 7
    assert seen[-1] == {who: {("orders", 0), ("orders", 1)}}
    assert len(seen) == 2
