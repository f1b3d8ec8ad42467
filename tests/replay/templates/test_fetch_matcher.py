"""What the fast path takes for a Fetch response as captured, the full comparison does too."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from cluster.conversion.resource_names import NameMap
from dissector.protocol.apis import KEYS
from dissector.protocol.records import Record, RecordBatch, new_batch
from replay.compare.step_verdict import compare_outcome
from replay.mapping.id_map import IdMap
from replay.mapping.learner import learn
from replay.model.outcome import Outcome, Verdict
from replay.templates.fetch_bodies import FetchBodies
from replay.templates.fetch_matcher import FetchMatcher, learn_fetch
from tests.default_frames import response
from tests.replay.support.builders import topology, uuid
from tests.replay.support.outcomes import outcome

LIVE_BASE = 100


def batch(offset: int, texts: list[bytes], **given: Any) -> bytes:
    records = [Record(offset_delta=at, value=text) for at, text in enumerate(texts)]
    made: RecordBatch = new_batch(records, base_offset=offset)
    made.producer_epoch = 0
    for name, value in given.items():
        setattr(made, name, value)
    return made.to_bytes()


def fetched(version: int, base: int, topic: str = "t", number: int = 1) -> dict[str, Any]:
    """A response with two partitions that have records, and one that has none."""
    title = {"topic": topic} if version < 13 else {"topic_id": uuid(number)}
    given = {"high_watermark": base + 9, "last_stable_offset": base + 9}
    given |= {"log_start_offset": 0} if version >= 5 else {}
    given |= {"preferred_read_replica": -1} if version >= 11 else {}
    records = (
        batch(base, [b"a", b"b"], producer_id=7) + batch(base + 2, [b"c"], producer_id=7),
        batch(base + 5, [b"a"]),
        b"",
    )
    partitions = [
        {"partition_index": at, "records": each, **given} for at, each in enumerate(records)
    ]
    return {"responses": [{**title, "partitions": partitions}]}


def ids_of() -> IdMap:
    """The mapping of a target with another topic id, and a prefix before names."""
    ids = IdMap(topology({"x-t": 2}), NameMap(prefix="x-"))
    ids.captured_topics.learn({uuid(1): "t"})
    ids.producers.learn((7, 0), (70, 0))
    return ids


def fast(made: Outcome, ids: IdMap) -> bool:
    """Match, and learn if that succeeds; bodies shared by several readers match as others do."""
    captured = made.step.captured.response_message()
    assert captured is not None
    assert captured.body is not None
    assert made.response is not None
    found = FetchMatcher(ids).match(captured.body, made.response, ())
    bodies, matcher = FetchBodies(), FetchMatcher(ids)
    for _ in range(3):
        given = bodies.captured(made.step.captured)
        live = bodies.live(
            response(KEYS["Fetch"], made.version, 7, **made.response)[4:], made.version
        )
        assert given is not None
        assert live is not None
        assert matcher.match(given, live, ()) == found
    returned = None if found is None else learn_fetch(found, ids)
    for each in returned or ():
        ids.readers.record(made.step.captured.connection, made.step.number, each)
    return returned is not None


def slow(made: Outcome, ids: IdMap) -> Verdict:
    captured = made.step.captured.response_message()
    assert made.response is not None
    learn(made.step, made.parts[0].request, captured, made.response, made.version, ids)
    return compare_outcome(made, ids)[0]


def state(ids: IdMap) -> list[Any]:
    """What was learned of logs and their readers."""
    logs = {
        log: (each.live.starts, each.live.stretches, each.captured.starts, each.captured.stretches)
        for log, each in ids.offsets.logs()
        if each.live.starts
    }
    accounts = ids.readers._accounts
    read = {at: (list(each.returned), list(each.missing)) for at, each in accounts.items()}
    return [sorted(logs.items()), sorted(read.items(), key=repr)]


def both(version: int, live: dict[str, Any], **prepared: Any) -> tuple[bool, Verdict]:
    """Compare on both paths; what the fast one takes, the full comparison must find the same."""
    captured = fetched(version, 0)
    request = {"topics": []}
    made = [outcome("Fetch", version, captured, live, request=request) for _ in range(2)]
    sides = ids_of(), ids_of()
    for ids in sides:
        for place, appended in prepared.get("appended", {}).items():
            ids.offsets.log(*place).learn_appended(*appended)
    is_matched, verdict = fast(made[0], sides[0]), slow(made[1], sides[1])
    if is_matched:
        assert verdict is Verdict.SAME
        assert state(sides[0]) == state(sides[1])
    return is_matched, verdict


def live_of(version: int) -> dict[str, Any]:
    live = fetched(version, LIVE_BASE, "x-t", 2)
    first = live["responses"][0]["partitions"][0]
    first["records"] = b"".join(
        batch(LIVE_BASE + at, texts, producer_id=70)
        for at, texts in ((0, [b"a", b"b"]), (2, [b"c"]))
    )
    return live


@pytest.mark.parametrize("version", [4, 7, 11, 12, 13, 16, 18])
def test_a_response_as_captured_is_taken(version: int) -> None:
    assert both(version, live_of(version)) == (True, Verdict.SAME)


def test_partitions_come_in_any_order() -> None:
    live = live_of(16)
    live["responses"][0]["partitions"].reverse()
    assert both(16, live) == (True, Verdict.SAME)
    live["responses"][0]["partitions"][1] = live["responses"][0]["partitions"][0]
    assert not both(16, live)[0]


def changed() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what may become of a response, by name."""
    base = LIVE_BASE

    def other(what: str, at: int = 0, **values: Any) -> tuple[str, dict[str, Any]]:
        live = deepcopy(live_of(16))
        live["responses"][0]["partitions"][at].update(values)
        return what, live

    own = {"producer_id": 70}
    ends = batch(base + 2, [b"c"], **own)
    yield other("a partition's error", error_code=6)
    yield other("another value", records=batch(base, [b"a", b"B"], **own) + ends)
    yield other("a record less", records=batch(base, [b"a"], **own) + ends)
    yield other("a batch less", records=batch(base, [b"a", b"b"], **own))
    yield other("batches in another order", records=ends + batch(base, [b"a", b"b"], **own))
    yield other("a batch twice", records=batch(base, [b"a", b"b"], **own) * 2 + ends)
    yield other("another producer", records=batch(base, [b"a", b"b"], producer_id=71) + ends)
    yield other("no producer", records=batch(base, [b"a", b"b"]) + ends)
    yield other("another time", records=batch(base, [b"a", b"b"], base_timestamp=5, **own) + ends)
    yield other("LogAppendTime", records=batch(base, [b"a", b"b"], attributes=8, **own) + ends)
    yield other("no records", records=b"")
    yield other("null", records=None)
    yield other("records where none were", at=2, records=batch(base, [b"z"]))
    yield other("a cut batch", records=batch(base, [b"a", b"b"], **own)[:-3])
    damaged = bytearray(batch(base, [b"a", b"b"], **own) + ends)
    damaged[-len(ends) + 17] ^= 1
    yield other("a wrong CRC", records=bytes(damaged))
    yield other("a low high watermark", high_watermark=base - 1)
    yield other("a low last stable offset", last_stable_offset=0)
    yield other("no high watermark", high_watermark=-1)
    yield other("no log start", log_start_offset=-1)
    yield other("another replica", preferred_read_replica=3)
    yield other("another partition", partition_index=4)
    aborted = [{"producer_id": 70, "first_offset": base}]
    yield other("an aborted transaction", aborted_transactions=aborted)
    yield "an error", {**live_of(16), "error_code": 70}
    yield "a session", {**live_of(16), "session_id": 9}
    yield "a throttle time", {**live_of(16), "throttle_time_ms": 5}
    yield "no topic", {"responses": []}
    unknown = live_of(16)
    unknown["responses"][0]["topic_id"] = uuid(3)
    yield "another topic", unknown
    twice = live_of(16)
    twice["responses"] *= 2
    yield "a topic twice", twice


CHANGED = dict(changed())


@pytest.mark.parametrize("live", CHANGED.values(), ids=CHANGED)
def test_a_changed_response_is_left_to_the_full_comparison(live: dict[str, Any]) -> None:
    is_matched, _ = both(16, live)
    assert not is_matched


def test_offsets_without_records_between_batches_count_as_in_the_full_comparison() -> None:
    live = live_of(16)
    batches = [
        batch(LIVE_BASE + at, texts, producer_id=70)
        for at, texts in ((0, [b"a", b"b"]), (4, [b"c"]))
    ]
    live["responses"][0]["partitions"][0]["records"] = b"".join(batches)
    assert both(16, live) == (True, Verdict.SAME)


def test_records_at_other_offsets_than_appended_are_left_to_the_full_comparison() -> None:
    assert both(16, live_of(16), appended={("t", 0): (0, LIVE_BASE, 3, 1)})[0]
    assert not both(16, live_of(16), appended={("t", 0): (0, LIVE_BASE + 1, 3, 1)})[0]
    assert not both(16, live_of(16), appended={("t", 0): (1, LIVE_BASE, 3, 1)})[0]


def test_a_pair_matched_before_is_judged_again_when_what_is_known_of_it_changes() -> None:
    made, ids = outcome("Fetch", 16, fetched(16, 0), live_of(16)), ids_of()
    bodies, matcher = FetchBodies(), FetchMatcher(ids)
    frame = response(KEYS["Fetch"], 16, 7, **made.response or {})[4:]

    def is_matched() -> bool:
        given, live = bodies.captured(made.step.captured), bodies.live(frame, 16)
        assert given is not None
        assert live is not None
        return matcher.match(given, live, ()) is not None

    assert is_matched()
    ids.producers.learn((7, 0), (71, 0))
    assert not is_matched()
    ids.producers.learn((7, 0), (70, 0))
    assert is_matched()
    ids.captured_topics.learn({uuid(5): "t"})
    assert not is_matched()
