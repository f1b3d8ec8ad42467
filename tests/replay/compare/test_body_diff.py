"""Differences between response bodies, field by field."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from cluster.conversion.resource_names import NameMap
from dissector.protocol.embedded.membership.assignors import StickyUserData
from dissector.protocol.embedded.membership.consumer_protocol import ConsumerProtocolSubscription
from dissector.protocol.records import Record, new_batch
from replay.compare.step_verdict import compare_outcome
from replay.mapping.id_map import IdMap
from replay.model.outcome import Difference, Verdict
from tests.replay.support.comparison import fetched, found, produced
from tests.replay.support.outcomes import outcome
from tests.replay.support.produce_messages import batches


def test_log_start_offsets_are_not_compared_beside_an_error() -> None:
    captured, live = produced(error_code=47), produced(error_code=47)
    _partition(live)["log_start_offset"] = -1
    assert found("Produce", 7, captured, live) == (Verdict.EQUIVALENT, [])
    captured, live = produced(), produced()
    _partition(live)["log_start_offset"] = -1
    path = "responses[orders].partition_responses[0].log_start_offset"
    assert found("Produce", 7, captured, live) == (Verdict.DIFFERS, [(path, 0, -1)])


def _partition(body: dict[str, Any]) -> dict[str, Any]:
    partition: dict[str, Any] = body["responses"][0]["partition_responses"][0]
    return partition


def test_an_unmapped_offset_is_compared_unchanged() -> None:
    assert found("Produce", 7, produced(base_offset=5), produced(base_offset=6)) == (
        Verdict.DIFFERS,
        [("responses[orders].partition_responses[0].base_offset", 5, 6)],
    )


def test_offsets_are_translated() -> None:
    ids = IdMap()
    ids.offsets.learn("orders", 0, captured=5, live=100, count=1)
    live = produced(base_offset=100)
    assert found("Produce", 7, produced(base_offset=5), live, ids) == (Verdict.SAME, [])


def test_the_first_offset_of_a_log_with_uncaptured_first_records() -> None:
    ids = IdMap()
    ids.offsets.learn("orders", 0, captured=8, live=0, count=2)
    ids.offsets.learn("orders", 0, captured=0, live=0)  # the start of both logs
    for offset in (0, 8):
        at = produced(base_offset=offset)
        assert found("Produce", 7, at, produced(base_offset=0), ids) == (Verdict.SAME, [])
    verdict, _ = found("Produce", 7, produced(base_offset=9), produced(base_offset=0), ids)
    assert verdict is Verdict.DIFFERS


def test_names_are_translated() -> None:
    ids = IdMap(names=NameMap({"orders": "bills"}))
    live = produced(topic="bills")
    assert found("Produce", 7, produced(), live, ids) == (Verdict.SAME, [])


def test_a_different_error_hides_its_consequences() -> None:
    live = produced(error_code=3, base_offset=-1)
    made = outcome("Produce", 7, produced(base_offset=5), live)
    path = "responses[orders].partition_responses[0].error_code"
    assert compare_outcome(made, IdMap()) == (
        Verdict.ERROR_CHANGED,
        [Difference(path, 0, 3, is_error=True)],
    )


def test_arrays_are_aligned_by_their_keys() -> None:
    partitions = [{"index": 0}, {"index": 1, "base_offset": 4}]
    captured = {"responses": [{"name": "orders", "partition_responses": partitions}]}
    turned = {"responses": [{"name": "orders", "partition_responses": partitions[::-1]}]}
    assert found("Produce", 7, captured, turned) == (Verdict.SAME, [])  # by a hash of their ids
    less = {"responses": [{"name": "orders", "partition_responses": partitions[:1]}]}
    verdict, differences = found("Produce", 7, captured, less)
    assert verdict is Verdict.DIFFERS
    ((path, before, after),) = differences
    assert path == "responses[orders].partition_responses[1]"
    assert before["base_offset"] == 4
    assert after is None
    verdict, differences = found("Produce", 7, less, captured)
    assert [path for path, *_ in differences] == [path]
    assert differences[0][1] is None


def test_topics_by_id_are_topics_by_name() -> None:
    here, there = UUID(int=7), UUID(int=8)
    ids = IdMap()
    ids.captured_topics.learn({here: "orders"})
    ids.live_topics.learn({there: "orders"})
    partition = {"index": 0, "error_code": 3}
    captured = {"responses": [{"topic_id": here, "partition_responses": [partition]}]}
    live = {"responses": [{"topic_id": there, "partition_responses": [{"index": 0}]}]}
    assert found("Produce", 13, captured, live, ids) == (
        Verdict.ERROR_CHANGED,
        [("responses[orders].partition_responses[0].error_code", 3, 0)],
    )
    named = {"responses": [{"name": "orders", "partition_responses": [partition]}]}
    assert found("Produce", 13, captured, named, ids, live_version=12) == (
        Verdict.EQUIVALENT,
        [],
    )


@pytest.mark.parametrize(
    ("captured", "live", "expected"),
    [
        ((6, ""), (9, None), Verdict.EQUIVALENT),
        ((9, None), (6, ""), Verdict.EQUIVALENT),
        ((9, None), (9, ""), Verdict.DIFFERS),
        ((7, None), (9, ""), Verdict.DIFFERS),
        ((6, "range"), (9, None), Verdict.DIFFERS),
    ],
)
def test_empty_equals_null_in_a_version_without_nulls(
    captured: tuple[int, str | None], live: tuple[int, str | None], expected: Verdict
) -> None:
    (version, before), (live_version, after) = captured, live
    bodies = {"protocol_name": before}, {"protocol_name": after}
    assert found("JoinGroup", version, *bodies, live_version=live_version)[0] is expected


def _batch(*texts: str, base_offset: int = 0) -> bytes:
    records = [Record(offset_delta=at, value=text.encode()) for at, text in enumerate(texts)]
    return new_batch(records, base_offset=base_offset).to_bytes()


def test_transactions_beside_other_records_are_not_compared() -> None:
    """Which ones are listed depends on the records of the response."""
    captured = fetched(_batch("a", "b"), aborted_transactions=[])
    for texts, verdict in (("ab", Verdict.DIFFERS), ("abc", Verdict.EQUIVALENT)):
        listed = [{"producer_id": 1, "first_offset": 0}]
        live = fetched(_batch(*texts), aborted_transactions=listed)
        assert found("Fetch", 7, captured, live)[0] is verdict


def test_common_records_are_compared() -> None:
    captured, more = fetched(_batch("a", "b")), fetched(_batch("a", "b", "c"))
    assert found("Fetch", 11, captured, more) == (Verdict.EQUIVALENT, [])
    assert found("Fetch", 11, captured, captured) == (Verdict.SAME, [])
    other = fetched(_batch("a", "x"))
    assert found("Fetch", 11, captured, other) == (
        Verdict.DIFFERS,
        [("responses[orders].partitions[0].records[1].value", "b", "x")],
    )


def test_records_missing_between_others_are_differences() -> None:
    captured = fetched(_batch("a") + _batch("b", base_offset=1) + _batch("c", base_offset=2))
    path = "responses[orders].partitions[0].records"
    for lost, live in (("0", (1, 2)), ("1", (0, 2))):
        given = fetched(b"".join(_batch("abc"[at], base_offset=at) for at in live))
        verdict, ((where, *_),) = found("Fetch", 11, captured, given)
        assert (verdict, where) == (Verdict.DIFFERS, f"{path}[{lost}]")
    fewer = fetched(_batch("a"))
    assert found("Fetch", 11, captured, fewer) == (Verdict.EQUIVALENT, [])


def test_records_returned_twice_are_differences() -> None:
    ids = IdMap()
    log = ids.offsets.log("orders", 0)
    log.learn_appended(0, 0, 1, step=0)
    log.learn_appended(1, 2, 1, step=1)  # another record has taken the place between
    captured = fetched(_batch("a") + _batch("b", base_offset=1))
    live = (_batch(text, base_offset=at) for at, text in enumerate("aab"))
    verdict, ((where, _, why),) = found("Fetch", 11, captured, fetched(b"".join(live)), ids)
    assert verdict is Verdict.DIFFERS
    assert where == "responses[orders].partitions[0].records[1]"
    assert why.endswith("although they were appended at 2")
    again = fetched(_batch("a") + _batch("a"))
    assert found("Fetch", 11, fetched(_batch("a")), again)[0] is Verdict.DIFFERS


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_timestamps_and_their_types_are_compared(codec: str) -> None:
    def batch(time_ms: int, is_appended: bool = False, codec: str = "none") -> dict[str, Any]:
        made = new_batch([Record(value=b"a" * 99), Record(offset_delta=1)], codec=codec)
        flags = made.attributes | 8 * is_appended
        made = replace(made, attributes=flags, base_timestamp=time_ms, max_timestamp=time_ms)
        return fetched(made.to_bytes(fix_crc=True))

    path = "responses[orders].partitions[0].records[0]"
    captured = batch(5)
    assert found("Fetch", 11, captured, batch(5, codec=codec))[0] is Verdict.SAME
    assert found("Fetch", 11, captured, batch(6, codec=codec))[1] == [
        (f"{path}.timestamp_ms", 5, 6)
    ]
    types = "CreateTime", "LogAppendTime"
    assert found("Fetch", 11, captured, batch(5, True, codec))[1] == [
        (f"{path}.timestamp_type", *types)
    ]
    assert found("Fetch", 11, batch(5, True), batch(9, True, codec))[0] is Verdict.SAME


def test_records_above_the_high_watermark_are_not_compared() -> None:
    path = "responses[orders].partitions[0]"
    records = _batch("a", "b", base_offset=5)
    captured, noted, live = (fetched(records, high_watermark=each) for each in (7, 5, 4))
    assert found("Fetch", 11, captured, noted) == (Verdict.SAME, [])  # before it was read
    outcome_ = found("Fetch", 11, captured, live)
    assert outcome_ == (Verdict.DIFFERS, [(f"{path}.high_watermark", 7, 4)])
    live = fetched(records, last_stable_offset=0)
    ids = IdMap()
    assert found("Fetch", 11, captured, live, ids)[0] is Verdict.DIFFERS
    ids.ended_transactions = 1  # its marker may be on the way
    assert found("Fetch", 11, captured, live, ids)[0] is not Verdict.DIFFERS


def test_records_are_found_by_translated_offsets() -> None:
    ids = IdMap()
    ids.offsets.learn("orders", 0, captured=0, live=50, count=2)
    captured, live = fetched(_batch("a", "b")), fetched(_batch("a", "b", base_offset=50))
    assert found("Fetch", 11, captured, live, ids) == (Verdict.SAME, [])


def test_missing_records_go_to_the_account_of_the_reader() -> None:
    ids = IdMap()
    compared = found("Fetch", 11, fetched(_batch("a", "b")), fetched(None), ids)
    assert compared == (Verdict.EQUIVALENT, [])
    (account,) = ids.readers.with_missing()
    assert (account.log, list(account.missing)) == (("orders", 0), [(0, 2)])
    assert found("Fetch", 11, fetched(None), fetched(_batch("a")), ids)[0] is Verdict.EQUIVALENT
    (account,) = ids.readers.with_missing()
    assert list(account.missing) == [(1, 2)]


def test_members_with_new_ids_are_compared_in_their_order() -> None:
    def joined(*metadata: bytes) -> dict[str, Any]:
        members = [
            {"member_id": f"m{at}-{hash(metadata)}", "metadata": data}
            for at, data in enumerate(metadata)
        ]
        return {"leader": "a", "member_id": "a", "members": members}

    verdict, differences = found("JoinGroup", 5, joined(b"1", b"2"), joined(b"1", b"3"))
    assert verdict is Verdict.DIFFERS
    assert [each[1:] for each in differences] == [("32", "33")]


def test_user_data_of_assignors_is_compared_decoded() -> None:
    def joined(generation: int, partition: int) -> dict[str, Any]:
        had = [{"topic": "t", "partitions": [partition]}]
        kept = StickyUserData.codec(1).build({"previous_assignment": had, "generation": generation})
        subscription = ConsumerProtocolSubscription.codec(0).build(
            {"topics": ["t"], "user_data": kept}
        )
        member = {"member_id": "m", "metadata": b"\0\0" + subscription}
        named = {"protocol_type": "consumer", "protocol_name": "sticky", "leader": "m"}
        return named | {"member_id": "m", "generation_id": generation, "members": [member]}

    ids = IdMap()
    ids.members.learn_generation("g", "m", 1, 4)
    request_body = {"group_id": "g", "member_id": "m"}
    assert (
        found("JoinGroup", 7, joined(1, 0), joined(4, 0), ids, request=request_body)[0]
        is Verdict.SAME
    )
    verdict, differences = found(
        "JoinGroup", 7, joined(1, 0), joined(4, 2), ids, request=request_body
    )
    at = "members[m].metadata.user_data.previous_assignment[t].partitions"
    assert (verdict, differences) == (Verdict.DIFFERS, [(at, [0], [2])])


def test_a_batch_with_decreasing_mapped_offsets() -> None:
    ids = IdMap()
    ids.offsets.learn("orders", 0, 10, 0, 1)
    ids.offsets.learn("orders", 0, 3, 5, 1)
    live = new_batch([Record(offset_delta=at, value=b"x") for at in range(6)], producer_id=-1)
    verdict, differences = found(
        "Fetch", 11, fetched(batches(20, 21)), fetched(live.to_bytes()), ids
    )
    assert verdict in (Verdict.EQUIVALENT, Verdict.DIFFERS), differences
