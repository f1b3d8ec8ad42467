from __future__ import annotations

from typing import Any

from construct import Container

from replay.final.endings import Endings

PRODUCER = 4


class Story:
    def __init__(self) -> None:
        self.endings = Endings()

    def send(self, api: str, **body: Any) -> Container:
        request = Container(transactional_id="t", **body)
        self.endings.record_request(api, request, 1)
        return request

    def end(self, committed: bool, error: int = 0) -> None:
        request = self.send("EndTxn", producer_id=PRODUCER, committed=committed)
        self.endings.record_response("EndTxn", request, Container(error_code=error))

    def init(self) -> None:
        request = self.send("InitProducerId")
        response = Container(error_code=0, producer_id=PRODUCER)
        self.endings.record_response("InitProducerId", request, response)

    @property
    def commits(self) -> list[bool | None]:
        return [each.is_commit for each in self.endings.of_producers().get(PRODUCER, ())]


def test_endings_are_in_order_and_the_last_one_is_the_state() -> None:
    story = Story()
    story.end(committed=True)
    story.end(committed=False)
    assert story.commits == [True, False]
    assert [each.is_commit for _, each in story.endings.states()] == [False]


def test_an_end_that_was_refused_may_be_either() -> None:
    story = Story()
    story.end(committed=True, error=51)
    assert story.commits == [None]
    assert not list(story.endings.states())


def test_a_new_producer_id_may_abort_and_hides_the_state() -> None:
    story = Story()
    story.end(committed=True)
    story.init()
    assert story.commits == [True]
    assert not list(story.endings.states())
    story.send("AddOffsetsToTxn")
    story.init()
    assert story.commits == [True, False]


def test_a_transaction_that_stays_open_is_aborted_at_the_end() -> None:
    story = Story()
    story.end(committed=True)
    story.endings.begin("t")
    assert story.commits == [True, False]
