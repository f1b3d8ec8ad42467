"""Dependencies between steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replay.order.dependencies import Dependencies
from replay.order.group_order import GroupAction, GroupEvent
from replay.order.read_write_sets import GROUPS, TOPICS, UNKNOWN_OFFSET, ReadWriteSets
from tests.replay.support.builders import uuid

LOG = ("orders", 0)


@dataclass
class Exchanges:
    """Artificial exchanges with connection, request time and response time."""

    rows: list[tuple[int, int, int | None]] = field(default_factory=list)
    causes: Dependencies = field(default_factory=Dependencies)

    def add(self, connection: int, begun: int, done: int | None, found: ReadWriteSets) -> None:
        self.rows.append((connection, begun, done))
        self.causes.add(found)

    def connection(self, number: int) -> int:
        return self.rows[number][0]

    def times_ns(self, number: int) -> tuple[int, int | None]:
        return self.rows[number][1:]

    def after(self, *missing: int) -> list[tuple[int, ...]]:
        order = [-1 if n in missing else n for n in range(len(self.rows))]
        return list(self.causes.of_steps(order, self, {uuid(1): "orders"}.get))


def touch(reads: str = "", writes: str = "") -> ReadWriteSets:
    found = ReadWriteSets()
    found.reads = {("group", each) for each in reads.split()}
    found.writes = {("group", each) for each in writes.split()}
    return found


def test_pipelining_depth_is_preserved() -> None:
    it = Exchanges()
    for begun, done in [(0, 10), (1, 11), (12, 15), (13, None), (16, 17)]:
        it.add(0, begun, done, ReadWriteSets())
    assert it.after() == [(), (), (1,), (1,), (2,)]


def test_writers_wait_for_readers_and_readers_for_writers() -> None:
    it = Exchanges()
    it.add(0, 0, 1, touch(reads="g"))
    it.add(1, 2, 3, touch(reads="g"))
    it.add(2, 4, 5, touch(writes="g"))
    it.add(3, 6, 7, touch(reads="g"))
    it.add(4, 8, 9, touch(writes="h"))
    assert it.after() == [(), (), (0, 1), (2,), ()]


def test_overlapping_exchanges_do_not_wait() -> None:
    it = Exchanges()
    it.add(0, 0, 9, touch(writes="g"))
    it.add(1, 1, 8, touch(writes="g"))
    assert it.after() == [(), ()]


def test_records_keep_their_order_across_overlapping_requests() -> None:
    it = Exchanges()
    for connection, offset in [(0, 5), (1, 0), (2, 9)]:
        it.add(connection, connection, 20, ReadWriteSets(appended_offsets={LOG: offset}))
    it.add(3, 4, 30, ReadWriteSets(read_offsets={(uuid(1), 0): 6}))
    it.add(4, 5, 30, ReadWriteSets(read_offsets={LOG: 9}))
    # The second was appended before the first, but requested later: no dependency.
    assert it.after() == [(), (), (0,), (0,), (2,)]


def test_writes_of_one_connection_may_be_pipelined() -> None:
    it = Exchanges()
    for connection, offset in [(0, 0), (0, 1), (1, 2), (0, 3), (0, 4)]:
        it.add(connection, offset, 20, ReadWriteSets(appended_offsets={LOG: offset}))
    assert it.after() == [(), (), (1,), (2,), ()]


def test_records_without_a_captured_offset_are_ordered_by_time() -> None:
    it = Exchanges()
    for connection, offset in [(0, 0), (1, UNKNOWN_OFFSET), (2, 5), (1, UNKNOWN_OFFSET)]:
        it.add(connection, connection, 20, ReadWriteSets(appended_offsets={LOG: offset}))
    it.add(3, 4, 30, ReadWriteSets(read_offsets={LOG: 4}))
    assert it.after() == [(), (0,), (1,), (2,), (1,)]


def test_control_records_wait_for_the_end_of_their_transaction() -> None:
    it = Exchanges()
    it.add(0, 0, 1, ReadWriteSets(ended_transaction=7))
    it.add(1, 0, None, ReadWriteSets(ended_producers={7}))
    it.add(2, 3, 4, ReadWriteSets(ended_producers={8}))
    assert it.after() == [(), (0,), ()]


def test_a_topic_is_created_by_the_same_request_as_captured() -> None:
    """Workers of Connect create the same topics at the same moment."""
    it = Exchanges()
    topic = {("topic", "t")}
    it.add(0, 0, 9, ReadWriteSets(writes=topic, created_topics={"t"}))
    it.add(1, 1, 8, ReadWriteSets(writes=topic, already_created_topics={"t"}))
    it.add(2, 1, 8, ReadWriteSets(writes=topic, already_created_topics={"other"}))
    assert it.after() == [(), (0,), ()]


def wrote(producer: int, offset: int) -> ReadWriteSets:
    partition = {("partition", *LOG)}
    return ReadWriteSets(
        reads={("producer", producer)}, writes=partition, appended_offsets={LOG: offset}
    )


@pytest.mark.parametrize("last", [0, 1])
def test_reads_of_or_behind_transactional_records_wait_for_the_end(last: int) -> None:
    """Responses omit the marker: the last returned record, or a position, implies it."""
    it = Exchanges()
    it.add(0, 0, 1, wrote(7, 0))
    it.add(0, 2, 9, ReadWriteSets(ended_transaction=7))
    it.add(1, 3, None, ReadWriteSets(read_offsets={LOG: last}))
    assert it.after()[2] == (0, 1)


def test_reads_wait_for_all_transactions_with_a_lower_start() -> None:
    it = Exchanges()
    it.add(0, 0, 1, wrote(7, 0))
    it.add(1, 2, 3, wrote(8, 4))
    it.add(2, 4, 5, wrote(9, 6))
    it.add(0, 6, 20, ReadWriteSets(ended_transaction=7))
    it.add(1, 7, 20, ReadWriteSets(ended_transaction=8))
    it.add(2, 8, 20, ReadWriteSets(ended_transaction=9))
    it.add(3, 9, None, ReadWriteSets(read_offsets={LOG: 5}))
    it.add(3, 10, None, ReadWriteSets(read_offsets={(uuid(1), 0): 6}))
    assert it.after()[6:] == [(1, 3, 4), (2, 3, 4, 5)]


def test_reads_do_not_wait_for_later_ends() -> None:
    it = Exchanges()
    it.add(0, 0, 1, wrote(7, 0))
    it.add(1, 2, 9, ReadWriteSets(read_offsets={LOG: 0}))
    it.add(0, 3, 4, ReadWriteSets(ended_transaction=7))
    assert it.after()[1] == (0,)


def test_transactional_offsets_take_effect_at_the_end() -> None:
    it = Exchanges()
    group = {("group", "g")}
    it.add(
        0, 0, 1, ReadWriteSets(reads={("producer", 7)}, writes=group, commits_in_transaction=True)
    )
    it.add(1, 2, 3, ReadWriteSets(ended_transaction=7))
    it.add(2, 4, 5, ReadWriteSets(reads=group))
    assert it.after() == [(), (0,), (1,)]


def test_requests_wait_for_a_response_that_first_shows_a_topic() -> None:
    it = Exchanges()
    it.add(0, 0, 1, ReadWriteSets(writes={("topic", "t")}, auto_created={"t"}))
    it.add(0, 2, 3, ReadWriteSets(reads={("topic", "t")}, existing_topics={"t"}))
    it.add(1, 4, 5, ReadWriteSets(reads={TOPICS}))
    it.add(2, 6, 7, ReadWriteSets(reads={("topic", "t")}, existing_topics={"t"}))
    it.add(3, 8, 9, ReadWriteSets(reads={TOPICS}))
    assert it.after() == [(), (0,), (1,), (1,), (1,)]


def test_a_request_for_all_groups_waits_for_each_group() -> None:
    it = Exchanges()
    for connection in range(2):
        writes = {("group", str(connection)), GROUPS}
        it.add(connection, 2 * connection, 2 * connection + 1, ReadWriteSets(writes=writes))
    it.add(2, 5, 6, ReadWriteSets(reads={GROUPS}))
    it.add(0, 7, 8, ReadWriteSets(writes={GROUPS}))
    assert it.after() == [(), (), (0, 1), (0, 2)]


def test_the_end_of_a_transaction_writes_to_its_partitions() -> None:
    it = Exchanges()
    partition = {("partition", "orders", 0)}
    producer = {("producer", 7)}
    it.add(0, 0, 1, ReadWriteSets(reads=producer, writes=partition, appended_offsets={LOG: 0}))
    it.add(0, 2, 3, ReadWriteSets(writes={("transactional_id", "t")}, ended_transaction=7))
    it.add(1, 4, 5, ReadWriteSets(reads=partition))
    it.add(0, 6, 7, ReadWriteSets(writes={("transactional_id", "t")}, ended_transaction=7))
    it.add(1, 8, 9, ReadWriteSets(reads=partition))
    assert it.after() == [(), (0,), (1,), (1,), (1, 2)]


def test_generations_order_overlapping_exchanges() -> None:
    it = Exchanges()
    stays = GroupEvent("g", "a", GroupAction.STAYS, 1, True)
    it.add(
        0,
        0,
        20,
        ReadWriteSets(group_event=GroupEvent("g", "a", GroupAction.JOINS, 1, True, members=("a",))),
    )
    it.add(1, 1, 20, ReadWriteSets(group_event=GroupEvent("g", "b", GroupAction.JOINS, 2, True)))
    it.add(0, 21, 22, ReadWriteSets(group_event=stays))
    it.add(
        0,
        23,
        24,
        ReadWriteSets(group_event=stays._replace(is_stable=False, reports_rebalance=True)),
    )
    assert it.after() == [(), (0,), (0,), (2,)]
    assert it.causes.group_history(range(4)) == (
        {2},
        {("g", 1): 1, ("g", 2): 0},
        {("g", "a"): 3, ("g", "b"): 1},
        set(),
        {("g", "a", 1): 3},
        {},
        {"g": 0},
    )


def test_no_step_waits_for_an_omitted_request() -> None:
    it = Exchanges()
    it.add(0, 0, 1, ReadWriteSets(appended_offsets={LOG: 0}, writes={("group", "g")}))
    it.add(1, 2, 3, ReadWriteSets(read_offsets={LOG: 0}, reads={("group", "g")}))
    it.add(0, 4, 5, ReadWriteSets())
    assert it.after(0) == [(), (), ()]


def test_topics_are_the_same_by_name_and_by_id() -> None:
    it = Exchanges()
    it.add(0, 0, 1, ReadWriteSets(writes={("topic", "orders")}))
    it.add(1, 2, 3, ReadWriteSets(reads={("topic", uuid(1))}))
    assert it.after() == [(), (0,)]


names = st.sampled_from("abc")
topics: st.SearchStrategy[str | UUID] = st.sampled_from(["orders", uuid(1), uuid(2)])
footprints = st.builds(
    ReadWriteSets,
    reads=st.sets(st.tuples(st.just("group"), names)),
    writes=st.sets(st.tuples(st.just("group"), names)),
    appended_offsets=st.dictionaries(st.tuples(topics, st.just(0)), st.integers(0, 9), max_size=1),
    read_offsets=st.dictionaries(st.tuples(topics, st.just(0)), st.integers(0, 9), max_size=1),
)


@given(
    st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 9), st.none() | st.integers(0, 9), footprints)
    )
)
def test_steps_only_wait_for_earlier_ones(
    rows: list[tuple[int, int, int | None, ReadWriteSets]],
) -> None:
    it = Exchanges()
    at = 0
    for connection, more, lasted, found in rows:
        at += more
        it.add(connection, at, None if lasted is None else at + lasted, found)
    for step, after in enumerate(it.after()):
        assert all(0 <= each < step for each in after)
        assert list(after) == sorted(set(after))
