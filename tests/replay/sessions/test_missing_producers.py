"""Captures that begin midway: earlier requests of producers are added."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dissector.protocol.apis import KEYS
from replay.sessions.missing_producers import NO_BEGINNING, NOT_CAPTURED
from tests.default_frames import request, response
from tests.replay.run.test_runner import Played, at_script
from tests.replay.sessions.test_transaction_compat import answered_in, batch, produce
from tests.replay.support.replay_captures import exchange, saved
from tests.replay.support.scripted_broker import Answers
from tests.tcp_captures import Wire

PRODUCE, END, ADD = (KEYS[name] for name in ("Produce", "EndTxn", "AddPartitionsToTxn"))


def midway(folder: Path, *steps: str) -> str:
    """Requests of a producer midway: `add`, `write`, `end`."""
    wire = Wire()
    connection = wire.connect()
    sequence = 40
    for number, step in enumerate(steps):
        if step == "add":
            named = {
                "v3_and_below_transactional_id": "x",
                "v3_and_below_producer_id": 9,
                "v3_and_below_producer_epoch": 3,
                "v3_and_below_topics": [{"name": "t", "partitions": [0]}],
            }
            results = [{"partition_index": 0, "partition_error_code": 0}]
            topics = [{"name": "t", "results_by_partition": results}]
            answer = response(ADD, 3, number, results_by_topic_v3_and_below=topics)
            exchange(connection, request(ADD, 3, number, **named), answer)
        elif step == "write":
            body = produce("x", batch(3, 1, sequence))
            answer = answered_in(9, number, {"index": 0, "base_offset": 500 + number})
            exchange(connection, request(PRODUCE, 9, number, **body, acks=-1), answer)
            sequence += 1
        else:
            named = {"transactional_id": "x", "producer_id": 9, "producer_epoch": 3}
            end_txn = request(END, 3, number, **named, committed=True)
            exchange(connection, end_txn, response(END, 3, number))
    return saved(folder, wire)


def target() -> Answers:
    results = [{"partition_index": 0, "partition_error_code": 0}]
    added = {"results_by_topic_v3_and_below": [{"name": "t", "results_by_partition": results}]}
    written = {
        "responses": [{"name": "t", "partition_responses": [{"index": 0, "base_offset": 7}]}]
    }
    state = {"transactional_id": "x", "transaction_state": "Empty", "topics": []}
    return {
        "InitProducerId": lambda _: {"producer_id": 70, "producer_epoch": 0},
        "AddPartitionsToTxn": lambda _: added,
        "Produce": lambda _: written,
        "EndTxn": lambda _: {},
        "DescribeTransactions": lambda _: {"transaction_states": [state]},
    }


def played(path: str) -> Played:
    return at_script(path, target())


def apis(found: Played) -> list[str]:
    wanted = ("InitProducerId", "AddPartitionsToTxn", "Produce", "EndTxn")
    return [each.api for each in found.requests if each.api in wanted]


def rules(found: Played) -> list[Any]:
    return [
        change.sent
        for each in found.outcomes
        for change in each.changes
        if change.why == NOT_CAPTURED
    ]


def test_a_producer_is_initialised_with_its_transactional_id(tmp_path: Path) -> None:
    found = played(midway(tmp_path, "add", "write", "end"))
    assert apis(found) == ["InitProducerId", "AddPartitionsToTxn", "Produce", "EndTxn"]
    assert found.requests[0].body is not None
    assert found.requests[0].body.transactional_id == "x"
    assert rules(found) == ["InitProducerId"]


def test_a_transaction_without_its_start_is_started(tmp_path: Path) -> None:
    found = played(midway(tmp_path, "write", "end"))
    assert apis(found) == ["InitProducerId", "AddPartitionsToTxn", "Produce", "EndTxn"]


def test_the_end_of_an_unknown_transaction_is_omitted(tmp_path: Path) -> None:
    found = played(midway(tmp_path, "end", "add", "write", "end"))
    assert apis(found) == ["InitProducerId", "AddPartitionsToTxn", "Produce", "EndTxn"]
    assert [each.failure for each in found.outcomes if each.is_refused] == [NO_BEGINNING]


def test_a_transaction_without_its_end_is_committed_before_the_next(tmp_path: Path) -> None:
    found = played(midway(tmp_path, "add", "write", "add", "write", "end"))
    once = ["AddPartitionsToTxn", "Produce", "EndTxn"]
    assert apis(found) == ["InitProducerId", *once, *once]
    assert all(each.body.committed for each in found.requests if each.api == "EndTxn" and each.body)
    assert rules(found) == ["InitProducerId", "EndTxn"]


def test_gaps_in_captured_sequences_are_skipped(tmp_path: Path) -> None:
    """Also on a connection that is complete but for one gap."""
    found = played(midway(tmp_path, "add", "write", "write"))
    sent = [each.body for each in found.requests if each.api == "Produce" and each.body]
    records = [body.topic_data[0].partition_data[0].records for body in sent]
    assert [int.from_bytes(each[53:57], "big") for each in records] == [0, 1]
