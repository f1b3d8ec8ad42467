"""Prerequisites of steps among omitted requests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dissector.protocol.apis import KEYS
from replay.order.dependencies import Dependencies
from replay.order.read_write_sets import CLUSTER, TOPICS, ReadWriteSets, Resource
from replay.plan.missing_prerequisites import MissingPrerequisites, find_missing_prerequisites
from tests.default_frames import request, response
from tests.replay.run.test_runner import at_script
from tests.replay.support.builders import uuid
from tests.replay.support.replay_captures import exchange, saved
from tests.replay.support.scripted_broker import Answers
from tests.tcp_captures import Wire

Touched = tuple[Sequence[Resource], Sequence[Resource]]
"""What an exchange reads, and what it writes."""

ACLS, QUOTAS = ("settings", "acls"), ("settings", "quotas")


def found(exchanges: list[Touched], changing: dict[int, str], *unsent: int) -> list[set[str]]:
    causes = Dependencies()
    for reads, writes in exchanges:
        causes.add(ReadWriteSets(set(reads), set(writes)))
    order = range(len(exchanges))
    changes = {number: frozenset({api}) for number, api in changing.items()}
    missing = find_missing_prerequisites(order, changes, unsent, causes, {uuid(1): "orders"}.get)
    return [set(missing.of(step)) for step in order]


def topic(name: object) -> Resource:
    return ("topic", name)


def test_an_omitted_prerequisite_is_missing() -> None:
    exchanges: list[Touched] = [([ACLS], []), ([], [ACLS]), ([ACLS], []), ([QUOTAS], [])]
    assert found(exchanges, {1: "CreateAcls"}, 1) == [set(), set(), {"CreateAcls"}, set()]


def test_sent_prerequisites_are_not_missing() -> None:
    exchanges: list[Touched] = [([], [ACLS]), ([ACLS], [])]
    assert found(exchanges, {0: "CreateAcls"}) == [set(), set()]
    assert found(exchanges, {}, 0) == [set(), set()]


def test_missing_prerequisites_are_transitive() -> None:
    commit: Touched = ([topic("orders")], [("group", "g")])
    exchanges: list[Touched] = [([], [topic("orders")]), commit, ([("group", "g")], [])]
    named = {"CreatePartitions"}
    assert found(exchanges, {0: "CreatePartitions"}, 0) == [set(), named, named]
    assert found(exchanges, {0: "CreatePartitions"}, 0, 1) == [set(), named, set()]


def test_several_prerequisites_may_be_missing() -> None:
    exchanges: list[Touched] = [([], [ACLS]), ([], [topic("a")]), ([ACLS, topic("a")], [])]
    changing = {0: "CreateAcls", 1: "AlterConfigs", 2: "DeleteAcls"}
    assert found(exchanges, changing, 0, 1)[2] == {"AlterConfigs", "CreateAcls"}


def test_topics_are_the_same_by_name_and_by_id() -> None:
    exchanges: list[Touched] = [([], [topic("orders")]), ([topic(uuid(1))], [])]
    assert found(exchanges, {0: "AlterConfigs"}, 0)[1] == {"AlterConfigs"}


def test_a_list_is_a_prerequisite_of_its_readers_only() -> None:
    exchanges: list[Touched] = [
        ([], [TOPICS, topic("a"), CLUSTER]),
        ([], [TOPICS, topic("b"), CLUSTER]),
        ([topic("b"), CLUSTER], []),
        ([TOPICS], []),
    ]
    missing = found(exchanges, {0: "DeleteTopics"}, 0)
    assert missing == [set(), set(), set(), {"DeleteTopics"}]


def test_nothing_is_missing_by_default() -> None:
    assert not MissingPrerequisites().of(7)


def test_effects_of_omitted_requests_are_not_awaited(tmp_path: Path) -> None:
    wire = Wire()
    create, describe = KEYS["CreateAcls"], KEYS["DescribeAcls"]
    connection = exchange(wire.connect().syn(), request(create, 2, 1), response(create, 2, 1))
    resource = {"resource_type": 2, "resource_name": "orders", "pattern_type": 3, "acls": []}
    exchange(connection, request(describe, 2, 2), response(describe, 2, 2, resources=[resource]))
    answers: Answers = {"DescribeAcls": lambda _: {"resources": []}}
    assert len(at_script(saved(tmp_path, wire), answers).requests) == 1
