from __future__ import annotations

from typing import Any

from construct import Container

from cluster.client.broker_metadata import Topology
from replay.final.commits import Commits, GroupLog

PLACE = GroupLog("g", "orders", 0)
VERSION = 6


def _topics(**values: Any) -> list[Container]:
    each = Container(partition_index=0, **values)
    return [Container(name="orders", partitions=[each])]


class Story:
    """Commits of one group, request by request."""

    def __init__(self) -> None:
        self.commits = Commits(Topology())

    def send(self, api: str, version: int = VERSION, **body: Any) -> Container:
        request = Container(body)
        self.commits.record_request(api, version, request, 1)
        return request

    def answer(self, api: str, request: Container, error: int = 0) -> None:
        response = Container(topics=_topics(error_code=error), error_code=error)
        self.commits.record_response(api, request, response)

    def commit(self, offset: int, transactional_id: str = "", **more: Any) -> Container:
        names = {"transactional_id": transactional_id} if transactional_id else {}
        topics = _topics(committed_offset=offset, committed_metadata=None)
        api = "TxnOffsetCommit" if transactional_id else "OffsetCommit"
        return self.send(api, group_id="g", topics=topics, **names, **more)

    def committed(self, offset: int, transactional_id: str = "") -> None:
        request = self.commit(offset, transactional_id)
        self.answer("TxnOffsetCommit" if transactional_id else "OffsetCommit", request)

    def end(self, committed: bool, error: int = 0) -> None:
        request = self.send("EndTxn", transactional_id="t", committed=committed)
        self.answer("EndTxn", request, error)

    @property
    def offsets(self) -> list[int]:
        found = dict(self.commits.certain())
        return sorted(each.offset for each in found.get(PLACE, ()))


def test_the_last_of_two_commits_counts() -> None:
    story = Story()
    story.committed(1)
    story.committed(2)
    assert story.offsets == [2]


def test_of_overlapping_commits_either_may_be_the_last() -> None:
    story = Story()
    first, second = story.commit(1), story.commit(2)
    story.answer("OffsetCommit", second)
    story.answer("OffsetCommit", first)
    assert story.offsets == [1, 2]


def test_a_commit_without_a_response_or_with_an_error_may_count() -> None:
    story = Story()
    story.committed(1)
    story.answer("OffsetCommit", story.commit(2), 16)
    story.commit(3)
    assert story.offsets == [1, 2, 3]
    story.committed(4)
    assert story.offsets == [3, 4]  # the one with an error was over before


def test_nothing_is_certain_without_an_acknowledged_commit() -> None:
    story = Story()
    story.answer("OffsetCommit", story.commit(2), 16)
    assert not story.offsets


def test_offsets_of_a_transaction_count_at_its_end() -> None:
    story = Story()
    story.committed(1)
    story.committed(2, "t")
    assert story.offsets == [1, 2]
    story.end(committed=True)
    assert story.offsets == [2]


def test_offsets_of_an_aborted_transaction_do_not_count() -> None:
    story = Story()
    story.committed(1)
    story.committed(2, "t")
    story.end(committed=False)
    assert story.offsets == [1]


def test_offsets_may_count_if_the_end_had_no_answer_before_an_abort() -> None:
    story = Story()
    story.committed(1)
    story.committed(2, "t")
    story.send("EndTxn", transactional_id="t", committed=True)
    story.answer("InitProducerId", story.send("InitProducerId", transactional_id="t"))
    assert story.offsets == [1, 2]


def test_an_offset_that_a_transaction_was_refused_does_not_count() -> None:
    story = Story()
    story.answer("TxnOffsetCommit", story.commit(2, "t"), 16)
    story.end(committed=True)
    assert not story.offsets


def test_deleted_offsets_are_not_judged() -> None:
    for api, body in (
        ("DeleteGroups", {"groups_names": ["g"]}),
        ("OffsetDelete", {"group_id": "g", "topics": _topics()}),
        ("DeleteTopics", {"topic_names": ["orders"]}),
    ):
        story = Story()
        story.committed(1)
        story.send(api, **body)
        assert not story.offsets, api


def test_offsets_that_expire_soon_are_not_judged() -> None:
    story = Story()
    story.answer("OffsetCommit", story.commit(1, retention_time_ms=1000))
    assert not story.offsets
