"""Members of share groups acknowledge the records that the target gave them."""

from __future__ import annotations

from typing import Any

import pytest

from dissector.engine.exchanges.captured_exchange import CapturedExchange
from dissector.protocol.messages import Message
from replay.compare.share_distribution import is_of_distribution
from replay.mapping.id_map import IdMap
from replay.model.outcome import HELD, Difference
from replay.run.share_acquisitions import ShareAcquisitions
from replay.sessions.retry_policy import RetryReason
from tests.replay.support import builders
from tests.replay.support.builders import uuid
from tests.replay.support.outcomes import outcome
from tests.replay.support.produce_messages import batches

ACCEPT, RELEASE, REJECT = 1, 2, 3
LIVE_AHEAD = 100
"""Live offsets are so much higher."""


def acquisitions() -> ShareAcquisitions:
    ids = IdMap()
    ids.captured_topics.learn({uuid(1): "t"})
    ids.live_topics.learn({uuid(1): "t"})
    ids.offsets.log("t", 0).learn(0, LIVE_AHEAD, 50)
    return ShareAcquisitions(ids)


def fetch(member: str) -> CapturedExchange:
    fields = asked("ShareFetch", member).body
    return outcome("ShareFetch", 1, {}, {}, request=fields).step.captured


def asked(api: str, member: str, epoch: int = 1, *acks: tuple[int, int, list[int]]) -> Message:
    names = "first_offset", "last_offset", "acknowledge_types"
    found = [dict(zip(names, each, strict=True)) for each in acks]
    topics = [
        {
            "topic_id": uuid(1),
            "partitions": [{"partition_index": 0, "acknowledgement_batches": found}],
        }
    ]
    fields = {"group_id": "g", "member_id": member, "share_session_epoch": epoch, "topics": topics}
    return builders.request(api, 1, fields)


def answer(*offsets: int, live: bool = True) -> Message:
    ahead = LIVE_AHEAD if live else 0
    acquired = [
        {"first_offset": each + ahead, "last_offset": each + ahead, "delivery_count": 1}
        for each in offsets
    ]
    records = batches(*(each + ahead for each in offsets))
    partition = {"partition_index": 0, "records": records, "acquired_records": acquired}
    topics = [{"topic_id": uuid(1), "partitions": [partition]}]
    return builders.response("ShareFetch", 1, {"responses": topics})


def sent(message: Message) -> list[tuple[int, int, list[int]]]:
    body: Any = message.body
    (batch_list,) = (p.acknowledgement_batches for t in body.topics for p in t.partitions)
    return [(b.first_offset, b.last_offset, list(b.acknowledge_types)) for b in batch_list]


def test_acknowledgements_of_held_records_stay() -> None:
    found = acquisitions()
    found.record_response(fetch("m"), answer(4, 5, 6).body)
    message = asked("ShareAcknowledge", "m", 2, (4, 6, [ACCEPT]))
    assert found.assign(message) == []
    assert sent(message) == [(4, 6, [ACCEPT])]


def test_acknowledgements_wait_for_the_member_that_holds_the_records() -> None:
    found = acquisitions()
    found.record_response(fetch("other"), answer(4, 5, 6).body)
    message = asked("ShareAcknowledge", "m", 2, (4, 6, [ACCEPT, RELEASE, REJECT]))
    (change,) = found.assign(message)
    assert (change.why, change.captured, change.sent) == (HELD, "4: 1, 5: 2, 6: 3", "")
    assert sent(message) == []
    message = asked("ShareAcknowledge", "other", 2, (9, 9, [ACCEPT]))
    found.assign(message)
    assert sent(message) == [(4, 4, [ACCEPT]), (5, 5, [RELEASE]), (6, 6, [REJECT])]
    found.assign(message := asked("ShareAcknowledge", "other", 3))
    assert sent(message) == [], "each goes out once"


def test_a_released_record_is_acknowledged_again_when_it_is_held_again() -> None:
    found = acquisitions()
    found.record_response(fetch("m"), answer(4).body)
    found.assign(asked("ShareAcknowledge", "m", 2, (4, 4, [RELEASE])))
    found.assign(message := asked("ShareAcknowledge", "m", 3, (4, 4, [ACCEPT])))
    assert sent(message) == []
    found.record_response(fetch("m"), answer(4).body)
    found.assign(message := asked("ShareFetch", "m", 4))
    assert sent(message) == [(4, 4, [ACCEPT])]


def test_the_end_of_a_session_releases_its_records() -> None:
    found = acquisitions()
    found.record_response(fetch("m"), answer(4, 5).body)
    found.assign(message := asked("ShareAcknowledge", "m", -1, (4, 4, [ACCEPT])))
    assert sent(message) == [(4, 4, [ACCEPT])]
    found.assign(message := asked("ShareAcknowledge", "m", 1, (5, 5, [ACCEPT])))
    assert sent(message) == []


def test_huge_ranges_cost_no_time() -> None:
    found = acquisitions()
    found.record_response(fetch("m"), answer(4).body)
    found.assign(message := asked("ShareAcknowledge", "m", 2, (0, (1 << 62), [ACCEPT])))
    assert sent(message) == [(4, 4, [ACCEPT])]


def test_records_that_the_group_has_are_not_awaited() -> None:
    found = acquisitions()
    assert not found.are_given(RetryReason.NO_RECORDS, fetch("m"), answer(4, 5, live=False))
    found.record_response(fetch("other"), answer(4).body)
    assert not found.are_given(RetryReason.NO_RECORDS, fetch("m"), answer(4, 5, live=False))
    found.record_response(fetch("m"), answer(5).body)
    assert found.are_given(RetryReason.NO_RECORDS, fetch("m"), answer(4, 5, live=False))
    assert not found.are_given(RetryReason.NOT_READY, fetch("m"), answer(4, 5, live=False))


@pytest.mark.parametrize(
    ("path", "captured", "replayed", "is_tolerated"),
    [
        ("responses[t].partitions[0].acquired_records[4].delivery_count", 1, 2, True),
        ("responses[t].partitions[0].acquired_records[4]", {"first_offset": 4}, None, True),
        ("responses[t].partitions[0].records", "1 record, offsets 4 to 4", "1 record", True),
        ("responses[t].partitions[0].records[4 to 5]", "2 records", "no records", True),
        ("responses[t].partitions[0].records[4].value", "a", "b", False),
        ("responses[t]", {"partitions": [{"error_code": 0}]}, None, True),
        ("responses[t]", None, {"partitions": [{"error_code": 6}]}, False),
        ("responses[t].partitions[0].acquisition_lock_timeout_ms", 1, 2, False),
    ],
)
def test_differences_in_the_distribution(
    path: str, captured: Any, replayed: Any, is_tolerated: bool
) -> None:
    assert is_of_distribution(Difference(path, captured, replayed)) is is_tolerated
    error = Difference(f"{path}.error_code", 0, 121, is_error=True)
    assert not is_of_distribution(error)
